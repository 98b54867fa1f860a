"""The HTTP side: validates, records turns, relays what the event log holds."""
