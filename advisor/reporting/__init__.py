"""What people and programs read: text, JSON and CSV."""
