"""What happens to alerts without a person: snoozes end."""
