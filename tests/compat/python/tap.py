"""What the programs here print: `ok TEXT` and `not ok TEXT`, for tests/compat/lib.sh."""


def check(text, good, got=None):
    if not good:
        print("got: %r" % (got,), flush=True)
    print("%s %s" % ("ok" if good else "not ok", text), flush=True)


def same(text, expected, got):
    check(text, expected == got, got)


def refused(text, code, reason, call, *args, **kwargs):
    """The call fails with that HTTP code, and its body is a Status with that reason."""
    import json

    try:
        got = call(*args, **kwargs)
    except Exception as error:
        body = getattr(error, "body", None) or "{}"
        status = json.loads(body)
        check(text, (error.status, status.get("kind"), status.get("reason")) == (code, "Status", reason), (error.status, body))
        return status
    check(text, False, got)
    return {}
