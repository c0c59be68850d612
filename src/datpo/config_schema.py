"""What the schema knows of the configuration: defaults, kinds of values, and readable words for what does not fit."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from datpo.core.errors import InputError

KINDS = {
    "array": "a list, e.g. [1]",
    "object": "a map, e.g. {key: value}",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
}
SHA256 = "^[0-9a-f]{64}$"


def known_keys(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], at: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key of the schema as a dotted path, with what the schema says about it; NAME stands for a free name."""
    schema = _resolved(schema, definitions)
    for key, child in schema.get("properties", {}).items():
        yield f"{at}{key}", _resolved(child, definitions)
        yield from known_keys(child, definitions, f"{at}{key}.")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from known_keys(schema["additionalProperties"], definitions, f"{at}NAME.")


def conform(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """`value` with the schema's defaults filled in, and with words and 1.0 read as the numbers that are wanted."""
    schema = _resolved(schema, definitions)
    if isinstance(value, Mapping):
        known, other = schema.get("properties", {}), schema.get("additionalProperties")
        full = {key: child["default"] for key, child in known.items() if "default" in child} | dict(value)
        fitting = {key: known.get(key, other if isinstance(other, Mapping) else {}) for key in full}
        return {key: conform(full[key], fitting[key], definitions) for key in full}
    if isinstance(value, list):
        return [conform(item, schema.get("items", {}), definitions) for item in value]
    kinds = schema.get("type", [])
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if isinstance(value, str) and "string" not in kinds and {"number", "integer", "boolean"} & kinds:
        value = as_number(value)
    if isinstance(value, float) and "integer" in kinds and value.is_integer():
        return int(value)
    return value


def as_number(text: str) -> Any:
    """A number that came as text: from the command line, or `1e-4`, which YAML takes for a word."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def validate(config: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Hold the configuration against the schema.

    Raises:
        InputError: one line for each mistake, with its key.
    """
    errors = sorted(Draft202012Validator(schema).iter_errors(config), key=lambda error: list(map(str, error.path)))
    for most in ("enum", "type"):  # which say more than all others of one value
        places = [error.path for error in errors if error.validator == most]
        errors = [error for error in errors if error.validator == most or error.path not in places]
    lines = [line for error in errors for line in _readable(error)]
    told = {line.split(": ")[1] for line in lines}
    lines += [line for line in _not_finite(config) if line.split(": ")[1] not in told]
    if lines:
        raise InputError("\n".join(dict.fromkeys(lines)))


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema itself in place of a reference to it; what stands beside the reference wins."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**definitions[name], **schema} if name else dict(schema)


def _readable(error: ValidationError) -> Iterator[str]:
    """A line that names the key and what is wanted there; one for each key that is unknown."""
    where = ".".join(str(part) for part in error.path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for key in (key for key in error.instance if key not in known):
            near = difflib.get_close_matches(str(key), known, n=1)
            guess = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            yield f"config: unknown key {'.'.join(filter(None, (where, str(key))))!r}; {guess}"
    else:
        yield f"config: {where or 'the whole'}: {_wanted(error)}"


def _wanted(error: ValidationError) -> str:
    given = repr(error.instance)
    given = given if len(given) <= 60 else f"{given[:60]}..."
    if "propertyNames" in error.schema_path:
        return (
            f"{given} cannot be a name: names are of letters, digits, dots, hyphens and underscores, a letter or "
            "digit first"
        )
    if error.validator == "type":
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        return f"must be {' or '.join(KINDS[kind] for kind in kinds)}, not {given}"
    if error.validator == "enum":
        return f"must be one of {', '.join(map(str, error.validator_value))}, not {given}"
    if error.validator == "required":
        lacking = [key for key in error.validator_value if key not in error.instance]
        return f"needs the key {', '.join(map(repr, lacking))}"
    if error.validator in ("minItems", "minProperties", "minLength") and not error.instance:
        return "must not be empty"
    if error.validator == "pattern" and error.validator_value == SHA256:
        return f"must be a SHA-256, 64 hexadecimal digits, not {given}"
    if error.validator == "pattern":
        return f"must contain {error.validator_value.replace(chr(92), '')}, unlike {given}"
    return str(error.message)


def _not_finite(value: Any, where: str = "") -> Iterator[str]:
    """A line for each number that is none or endless: the schema's limits let those through."""
    if isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _not_finite(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"config: {where}: must be a finite number, not {value}"
