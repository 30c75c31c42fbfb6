"""The words that spec, reference, implementation and suite share. It computes nothing."""
