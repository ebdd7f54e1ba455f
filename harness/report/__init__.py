"""What people see: tables and progress, made from records and events."""
