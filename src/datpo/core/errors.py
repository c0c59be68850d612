"""The one exception a user is meant to read: it names the thing and says what to do."""


class InputError(Exception):
    """Something the user gave (a config key, a file, a problem) is wrong; the message names it and the remedy."""
