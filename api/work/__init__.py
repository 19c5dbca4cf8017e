"""Work of people: alerts and decisions that wait, notes, attachments and the timeline of a customer."""
