"""The smallest program for which the laws of thund hold. Pure, standard library only."""
