"""What people do: the queue of alerts and decisions, notes, attachments, and a customer's timeline."""
