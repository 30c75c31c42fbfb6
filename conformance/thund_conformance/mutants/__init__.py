"""The implementation, wrong on purpose: one seeded bug for each law, and who kills it."""
