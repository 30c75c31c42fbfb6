"""The machines that check thund against its specs: TLC on every model, and the law table."""
