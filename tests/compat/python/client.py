"""The official Python client on our kinds: CustomObjectsApi and DynamicClient.

    client.py NAMESPACE     KUBECONFIG says which cluster
"""
import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from tap import check, refused, same

NAMESPACE = sys.argv[1]
GROUP, VERSION = "agents.x-k8s.io", "v1beta1"
WHERE = (GROUP, VERSION, NAMESPACE, "sandboxes")
POOLS = ("extensions." + GROUP, VERSION, NAMESPACE, "sandboxwarmpools")


def sandbox(name, **labels):
    return {
        "apiVersion": GROUP + "/" + VERSION,
        "kind": "Sandbox",
        "metadata": {"name": name, "labels": labels},
        "spec": {"operatingMode": "Suspended", "podTemplate": {"spec": {"containers": [{"name": "main", "image": "a"}]}}},
    }


def pool(name):
    return {
        "apiVersion": "extensions." + GROUP + "/" + VERSION,
        "kind": "SandboxWarmPool",
        "metadata": {"name": name},
        "spec": {"replicas": 0, "sandboxTemplateRef": {"name": "nobody"}},
    }


def names(answer):
    return sorted(item["metadata"]["name"] for item in answer["items"])


def objects(api):
    made = api.create_namespaced_custom_object(*WHERE, sandbox("a", by="python"))
    check("create returns the object", made["metadata"]["uid"] and made["metadata"]["resourceVersion"], made)
    same("get", made["metadata"]["uid"], api.get_namespaced_custom_object(*WHERE, "a")["metadata"]["uid"])
    same("create of a dry run", "dry", api.create_namespaced_custom_object(*WHERE, sandbox("dry"), dry_run="All")["metadata"]["name"])
    for name in "bcde":
        api.create_namespaced_custom_object(*WHERE, sandbox(name, odd=str(ord(name) % 2)))
    same("list", list("abcde"), names(api.list_namespaced_custom_object(*WHERE)))
    same("list by label", ["c", "e"], names(api.list_namespaced_custom_object(*WHERE, label_selector="odd=1")))
    same("list by field", ["b"], names(api.list_namespaced_custom_object(*WHERE, field_selector="metadata.name=b")))
    all_kinds = api.list_custom_object_for_all_namespaces(GROUP, VERSION, "sandboxes", field_selector="metadata.namespace=" + NAMESPACE)
    same("list of all namespaces", list("abcde"), names(all_kinds))
    return made


def pages(api):
    seen, token, left, rounds = [], None, None, 0
    while rounds == 0 or token:
        page = api.list_namespaced_custom_object(*WHERE, limit=2, **({"_continue": token} if token else {}))
        seen += names(page)
        token, rounds = page["metadata"].get("continue"), rounds + 1
        left = left or page["metadata"].get("remainingItemCount")
    same("pages of two", (list("abcde"), 3), (seen, rounds))
    same("the first says how many come", 3, left)


def changes(api):
    changed = api.patch_namespaced_custom_object(*WHERE, "a", {"metadata": {"labels": {"by": None, "new": "1"}}})
    same("patch of a dict is a merge patch", {"new": "1"}, changed["metadata"]["labels"])
    changed = api.patch_namespaced_custom_object(*WHERE, "a", [{"op": "add", "path": "/metadata/labels/two", "value": "2"}],
                                                 _content_type="application/json-patch+json")
    same("patch of a list is a JSON patch", {"new": "1", "two": "2"}, changed["metadata"]["labels"])
    applied = dict(sandbox("a", applied="yes"))
    changed = api.patch_namespaced_custom_object(*WHERE, "a", applied, field_manager="python", force=True,
                                                 _content_type="application/apply-patch+yaml")
    same("apply adds to it", {"applied": "yes", "new": "1", "two": "2"}, changed["metadata"]["labels"])
    changed["metadata"]["labels"] = {"replaced": "yes"}
    replaced = api.replace_namespaced_custom_object(*WHERE, "a", changed)
    same("replace", {"replaced": "yes"}, replaced["metadata"]["labels"])
    refused("replace of an old version", 409, "Conflict", api.replace_namespaced_custom_object, *WHERE, "a", changed)
    status = api.patch_namespaced_custom_object_status(*WHERE, "a", {"status": {"serviceFQDN": "seen.example.org"}})
    same("patch of the status", "seen.example.org", status["status"]["serviceFQDN"])
    check("get of the status", "spec" in api.get_namespaced_custom_object_status(*WHERE, "a"))
    api.create_namespaced_custom_object(*POOLS, pool("p"))
    scale = api.get_namespaced_custom_object_scale(*POOLS, "p")
    same("get of the scale", ("Scale", 0), (scale["kind"], scale["spec"].get("replicas", 0)))
    scale = api.patch_namespaced_custom_object_scale(*POOLS, "p", {"spec": {"replicas": 1}})
    same("patch of the scale", 1, scale["spec"]["replicas"])
    scale["spec"]["replicas"] = 0
    del scale["metadata"]["resourceVersion"]  # the controller writes meanwhile
    scale = api.replace_namespaced_custom_object_scale(*POOLS, "p", scale)
    same("replace of the scale", 0, scale["spec"].get("replicas", 0))


def events(api, version):
    seen, is_deleted, is_released = [], False, False
    for event in watch.Watch().stream(api.list_namespaced_custom_object, *WHERE, field_selector="metadata.name=watched",
                                      resource_version=version, timeout_seconds=30):
        seen.append(event["type"])
        if seen == ["ADDED"]:
            api.patch_namespaced_custom_object(*WHERE, "watched", {"metadata": {"finalizers": ["compat.test/hold"]}})
        elif event["object"]["metadata"].get("deletionTimestamp") and event["type"] == "MODIFIED" and not is_released:
            is_released = True  # once: the controller writes meanwhile
            api.patch_namespaced_custom_object(*WHERE, "watched", {"metadata": {"finalizers": None}})
        elif event["object"]["metadata"].get("finalizers") and event["type"] == "MODIFIED" and not is_deleted:
            is_deleted = True
            api.delete_namespaced_custom_object(*WHERE, "watched")
        if event["type"] == "DELETED":
            break
    same("a watch sees it come", "ADDED", seen[0])
    same("and go", "DELETED", seen[-1])
    check("with changes between", seen.count("MODIFIED") >= 2, seen)
    ended = list(watch.Watch().stream(api.list_namespaced_custom_object, *WHERE, field_selector="metadata.name=nobody", timeout_seconds=1))
    same("a watch ends at its time", [], ended)


def ends(api):
    answer = api.delete_namespaced_custom_object(*WHERE, "b")
    same("delete says so", ("Status", "Success", "b"), (answer["kind"], answer["status"], answer["details"]["name"]))
    api.delete_namespaced_custom_object(*WHERE, "c", body=client.V1DeleteOptions(propagation_policy="Background", grace_period_seconds=0))
    same("delete with options", ["a", "d", "e"], names(api.list_namespaced_custom_object(*WHERE)))
    api.delete_collection_namespaced_custom_object(*WHERE, label_selector="odd")
    same("delete of a collection", ["a"], names(api.list_namespaced_custom_object(*WHERE)))
    status = refused("get of nothing", 404, "NotFound", api.get_namespaced_custom_object, *WHERE, "nobody")
    same("names what it is", {"name": "nobody", "group": GROUP, "kind": "sandboxes"}, status.get("details"))
    refused("delete of nothing", 404, "NotFound", api.delete_namespaced_custom_object, *WHERE, "nobody")
    refused("create of what is there", 409, "AlreadyExists", api.create_namespaced_custom_object, *WHERE, sandbox("a"))
    wrong = sandbox("wrong")
    wrong["spec"]["operatingMode"] = "Sideways"
    status = refused("create of what is not valid", 422, "Invalid", api.create_namespaced_custom_object, *WHERE, wrong)
    same("has the field as its first cause", "spec.operatingMode", status.get("details", {}).get("causes", [{}])[0].get("field"))
    status = refused("an unknown field under Strict", 400, "BadRequest", api.create_namespaced_custom_object, *WHERE,
                     dict(sandbox("wrong"), extra=1), field_validation="Strict")
    refused("an unknown label selector", 400, "BadRequest", api.list_namespaced_custom_object, *WHERE, label_selector="a in")


def replace_once(boxes, name):
    """As often as its controller was faster."""
    while True:
        body = boxes.get(name=name, namespace=NAMESPACE).to_dict()
        try:
            boxes.replace(body=body, namespace=NAMESPACE)
            return body
        except ConflictError:
            continue


def by_discovery(api):
    kinds = dynamic.DynamicClient(api.api_client)
    boxes = kinds.resources.get(api_version=GROUP + "/" + VERSION, kind="Sandbox")
    same("DynamicClient finds the kind", ("sandboxes", True), (boxes.name, boxes.namespaced))
    made = boxes.create(body=sandbox("dynamic"), namespace=NAMESPACE)
    same("create", "dynamic", made.metadata.name)
    same("get", made.metadata.uid, boxes.get(name="dynamic", namespace=NAMESPACE).metadata.uid)
    same("list", 1, len(boxes.get(namespace=NAMESPACE, field_selector="metadata.name=dynamic").items))
    patched = boxes.patch(body={"metadata": {"labels": {"a": "b"}}}, name="dynamic", namespace=NAMESPACE,
                          content_type="application/merge-patch+json")
    same("patch", "b", patched.metadata.labels.a)
    applied = boxes.server_side_apply(body=sandbox("dynamic", c="d"), namespace=NAMESPACE, field_manager="dynamic", force_conflicts=True)
    same("server-side apply", ("b", "d"), (applied.metadata.labels.a, applied.metadata.labels.c))
    body = replace_once(boxes, "dynamic")
    try:
        body["metadata"]["resourceVersion"] = made.metadata.resourceVersion
        boxes.replace(body=body, namespace=NAMESPACE)
        check("replace of an old version is a conflict", False)
    except ConflictError:
        check("replace of an old version is a conflict", True)
    same("status", "Sandbox", boxes.status.get(name="dynamic", namespace=NAMESPACE).kind)
    seen = []
    for event in boxes.watch(namespace=NAMESPACE, resource_version=made.metadata.resourceVersion, timeout=30):
        seen.append(event["type"])
        if len(seen) == 1:
            boxes.delete(name="dynamic", namespace=NAMESPACE)
        if event["type"] == "DELETED":
            break
    same("watch up to the end", "DELETED", seen[-1])
    try:
        boxes.get(name="dynamic", namespace=NAMESPACE)
        check("get of nothing is not found", False)
    except NotFoundError:
        check("get of nothing is not found", True)


def main():
    config.load_kube_config()
    api = client.CustomObjectsApi()
    made = objects(api)
    pages(api)
    changes(api)
    api.create_namespaced_custom_object(*WHERE, sandbox("watched"))
    events(api, made["metadata"]["resourceVersion"])
    ends(api)
    by_discovery(api)


main()
