"""What a rule says when it does not accept."""


class Refused(Exception):
    """A proof step that does not hold; the message is one sentence for the user."""
