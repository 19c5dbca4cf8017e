"""Read descriptions: channels, places, foreign currency, dates, phrases."""
