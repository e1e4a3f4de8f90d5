"""From the schemas of CustomResourceDefinitions to requests with one wrong value each, for compare.py: every field of every kind gets what its
type, format, bounds, words, pattern, list type and required members do not allow, null, and a neighbour that is not known. Where the same
schema stands again, only its own type is tried there.

    fields.py SUFFIX DEFINITIONS.json     requests on the standard output, for the definitions whose group ends with SUFFIX

The definitions are a List. Standard library only.
"""

import argparse
import copy
import json

OURS = "x-k8s.io"
COLLECTIONS = {"Sandbox": "B", "SandboxClaim": "C", "SandboxTemplate": "T", "SandboxWarmPool": "W"}
# Values of a type, and what is of none of the others.
SOME = {"string": "s", "integer": 1, "number": 1, "boolean": True, "object": {}, "array": []}
WRONG = {
    "string": [7, {"a": "b"}],
    "integer": ["7", 1.5],
    "number": ["7", True],
    "boolean": ["true", 0],
    "object": ["s", [{}]],
    "array": ["s", {"a": 1}],
    "int-or-string": [1.5, True, {}],
}
FORMATS = {"int32": [2147483648, -2147483649, 1e30], "int64": [9223372036854775808, 1e30], "date-time": ["tomorrow", "2026-02-30T00:00:00Z", ""],
           "byte": ["!", "YQ="], "duration": ["1 hour"]}
VALID = {"date-time": "2026-01-01T00:00:00Z", "byte": "YQ==", "duration": "1h"}


def kind_of(schema):
    return "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "object")


def smallest(schema):
    """The smallest value that the schema allows; patterns are those of names and quantities."""
    if "default" in schema:
        return copy.deepcopy(schema["default"])
    if "enum" in schema:
        return schema["enum"][0]
    kind = kind_of(schema)
    if kind == "object":
        return {name: smallest(schema["properties"][name]) for name in schema.get("required", [])}
    if kind == "array":
        return [smallest(schema["items"]) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return VALID.get(schema.get("format"), "a" * max(1, schema.get("minLength", 1)))
    if kind in ("integer", "number"):
        return max(1, int(schema.get("minimum", 1)))
    return SOME.get(kind, 1)


def wrong(schema):
    """What the field itself does not allow: (what, value)."""
    kind = kind_of(schema)
    for value in WRONG.get(kind, []):
        yield "type", value
    if kind == "array":
        yield "null in it", [None]
        yield "types in it", [[], 1.5]
    if "additionalProperties" in schema:
        yield "null in it", {"k": None}
        yield "types in it", {"k": [], "": 1.5, "a.b/c": True}
    for value in FORMATS.get(schema.get("format"), []):
        yield "format", value
    if "enum" in schema:
        yield "word", ""
        yield "word", schema["enum"][0] + "x"
    if "pattern" in schema:
        yield "pattern", " bad\n"
        yield "pattern", ""
    for bound, step in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield bound, schema[bound] + step
    if schema.get("maxLength", 1 << 20) < 1 << 20:
        yield "maxLength", "é" * (schema["maxLength"] + 1)
    if schema.get("minLength"):
        yield "minLength", "a" * (schema["minLength"] - 1)
    if kind == "array":
        item = smallest(schema["items"])
        if schema.get("maxItems", 1 << 10) < 1 << 10:
            yield "maxItems", [item] * (schema["maxItems"] + 1)
        if schema.get("minItems"):
            yield "minItems", []
        if schema.get("x-kubernetes-list-type") in ("map", "set"):
            yield "twice", [item, item, copy.deepcopy(item)]
    if kind == "object" and "properties" in schema:
        whole = smallest(schema)
        yield "unknown", {**whole, "zz": {"a": 1}, "Name": "x"}
        for name in schema.get("required", []):
            yield f"without {name}", {k: v for k, v in whole.items() if k != name}
            yield f"{name} null", {**whole, name: None}
        yield "empty", {}


def types(schema):
    yield "type", WRONG.get(kind_of(schema), [[]])[0]
    yield "null", None


def places(schema, path, wrap, seen):
    """Every field below: its schema, its path, a function that makes a whole value around one of its own, and whether it is new."""
    text = json.dumps(schema, sort_keys=True)
    yield schema, path, wrap, text not in seen
    if text in seen:
        return
    seen.add(text)
    for name, inner in schema.get("properties", {}).items():
        whole = smallest(schema)
        yield from places(inner, f"{path}.{name}", lambda v, whole=whole, name=name, wrap=wrap: wrap({**copy.deepcopy(whole), name: v}), seen)
    if isinstance(schema.get("items"), dict):
        yield from places(schema["items"], path + "[]", lambda v, wrap=wrap: wrap([v]), seen)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from places(schema["additionalProperties"], path + "{}", lambda v, wrap=wrap: wrap({"k": v}), seen)


def requests(definition, seen):
    spec = definition["spec"]
    kind, version = spec["names"]["kind"], spec["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    collection = "${" + COLLECTIONS[kind] + "}"
    head = {"apiVersion": f"{spec['group'].replace(options.suffix, OURS)}/{version['name']}", "kind": kind, "metadata": {"name": "a"}}
    spec_of_smallest = smallest(schema["properties"]["spec"])
    if "status" in version.get("subresources", {}):
        yield f"{kind}: prepare", f"POST {collection}", {**head, "spec": spec_of_smallest}, ""
    for part in ("spec", "status"):
        if part not in schema["properties"]:
            continue
        for inner, path, wrap, is_new in places(schema["properties"][part], part, lambda v, part=part: {part: v}, seen):
            values = list(types(inner)) + (list(wrong(inner)) if is_new else [])
            for what, value in values[:1] + [v for v in values[1:] if v != values[0]]:
                body = {**head, **({"spec": spec_of_smallest} if part == "status" else {}), **wrap(value)}
                where = f"POST {collection}?dryRun=All"
                if part == "status":
                    where, body = f"PATCH {collection}/a/status?dryRun=All", wrap(value)
                yield f"{kind} {path} {what}", where, body, "application/merge-patch+json" if part == "status" else ""


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("suffix")
parser.add_argument("file")
options = parser.parse_args()
with open(options.file) as f:
    found = [d for d in json.load(f)["items"] if d["spec"]["group"].endswith(options.suffix)]
shown = set()
print("\n====\n".join(f"# {note}\n{where}\n{'Content-Type: ' + media if media else ''}".rstrip() + "\n\n" + json.dumps(body, ensure_ascii=False)
                      for d in found for note, where, body, media in requests(d, shown)))
