"""The main job on real data: flights, crashes, and the proof that nothing was lost."""
