"""Pictures of scenarios, drawn from what the reference does with them: the SVG files of docs/pictures.

Draw them anew with `python -m thund_conformance.pictures`.
"""
