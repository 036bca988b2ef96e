"""The language of private programs: expressions, databases, distributions and mechanisms."""
