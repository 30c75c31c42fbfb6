"""Who carries the rooms: on this machine, and later elsewhere. No window or watermark logic."""
