"""The characters that files print as a minus: fonts, spreadsheets and exports write hyphens and dashes for it, too."""

# Hyphens (plain, non-breaking), dashes (figure, en, em), bar, minus sign; small and full-width forms.
HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
SOFT_HYPHEN = "\u00ad"
MINUSES = f"-{HYPHENS}{SOFT_HYPHEN}"  # begins with the plain one, which then means no range in a character class
