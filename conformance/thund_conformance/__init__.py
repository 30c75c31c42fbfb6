"""Judge an engine by the laws: scenarios, engines to compare, tests, mutants."""
