"""What a description says: channels, places, foreign currency, dates, phrases."""
