"""Where rows come from and where results go: one module for each kind of system."""
