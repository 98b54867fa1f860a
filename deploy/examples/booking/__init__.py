"""Booking: a charge and a notification, at a payment provider that is a process of its own."""
