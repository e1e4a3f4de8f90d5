"""The published SDK of Agent Sandbox, without a router: claims of the pool `pool`, what is read of them, and their end. Then the calls
that the Go SDK makes, written down from its description, since its module cannot be had.

    sdk.py NAMESPACE     KUBECONFIG says which cluster
"""
import ipaddress
import sys
import time

from k8s_agent_sandbox import SandboxClient, exceptions
from k8s_agent_sandbox.models import SandboxDirectConnectionConfig
from kubernetes import client, config, watch

from tap import check, refused, same

NAMESPACE = sys.argv[1]
GROUP, VERSION = "agents.x-k8s.io", "v1beta1"
CLAIMS = ("extensions." + GROUP, VERSION, NAMESPACE, "sandboxclaims")
BOXES = (GROUP, VERSION, NAMESPACE, "sandboxes")


def raised(text, kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind:
        check(text, True)
    except Exception as error:
        check(text, False, error)
    else:
        check(text, False)


def python_sdk(api):
    sdk = SandboxClient(connection_config=SandboxDirectConnectionConfig(api_url="http://127.0.0.1:1"))
    box = sdk.create_sandbox("pool", namespace=NAMESPACE, sandbox_ready_timeout=90, labels={"team": "blue"},
                             shutdown_after_seconds=600, pod_labels={"sandbox.users.io/tier": "front"}, pod_annotations={"sandbox.users.io/note": "any"})
    claim = api.get_namespaced_custom_object(*CLAIMS, box.claim_name)
    same("the claim has the SDK's labels", {"agents.x-k8s.io/created-by": "python-client", "team": "blue"}, claim["metadata"]["labels"])
    same("and names its Sandbox", claim["status"]["sandbox"]["name"], box.sandbox_id)
    same("status", "SandboxReady", box.status()[0])
    pod = client.CoreV1Api().read_namespaced_pod(box.get_pod_name(), NAMESPACE)
    same("the pod's name is that of a pod which runs", "Running", pod.status.phase)
    same("its address", pod.status.pod_ip, box.get_pod_ip())
    check("which is one", ipaddress.ip_address(box.get_pod_ip()))
    same("the hash of its name", pod.metadata.labels["agents.x-k8s.io/sandbox-name-hash"], box.get_sandbox_name_hash())
    same("the pod has the label that was asked for", "front", pod.metadata.labels.get("sandbox.users.io/tier"))
    same("and the annotation", "any", pod.metadata.annotations.get("sandbox.users.io/note"))
    same("the claim's pool", "pool", sdk.get_sandbox_claim_warmpool_name(box.claim_name, NAMESPACE))
    same("it is in the list", [box.claim_name], sdk.list_all_sandboxes(NAMESPACE, label_selector="team=blue"))
    same("and can be had again", box.sandbox_id, sdk.get_sandbox(box.claim_name, NAMESPACE).sandbox_id)
    other = SandboxClient(connection_config=SandboxDirectConnectionConfig(api_url="http://127.0.0.1:1"))
    same("by somebody else too", box.sandbox_id, other.get_sandbox(box.claim_name, NAMESPACE, resolve_timeout=10).sandbox_id)
    box.terminate()
    same("terminate takes the claim away", [], sdk.list_all_sandboxes(NAMESPACE, label_selector="team=blue"))
    raised("what is gone is not found", exceptions.SandboxNotFoundError, other.get_sandbox, box.claim_name, NAMESPACE, resolve_timeout=2)
    raised("a pool that is not there is said at once", exceptions.SandboxWarmPoolNotFoundError, sdk.create_sandbox, "nobody",
           namespace=NAMESPACE, sandbox_ready_timeout=60)
    same("and its claim does not stay", [], sdk.list_all_sandboxes(NAMESPACE))
    sdk.delete_sandbox("nobody", NAMESPACE)
    check("to delete what is not there is no error", True)


def go_sdk(api):
    """POST with generateName; GET; WATCH by name without a version; LIST of the Sandbox; WATCH from there until Ready; DELETE."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.123456789Z", time.gmtime())
    made = api.create_namespaced_custom_object(*CLAIMS, {
        "kind": "SandboxClaim", "apiVersion": "extensions." + GROUP + "/" + VERSION,
        "metadata": {"generateName": "sandbox-claim-", "namespace": NAMESPACE, "labels": {"agents.x-k8s.io/created-by": "go-client"},
                     "annotations": {"agents.x-k8s.io/client-first-requested-at": stamp}},
        "spec": {"warmPoolRef": {"name": "pool"}}, "status": {"sandbox": {}}})
    name = made["metadata"]["name"]
    check("the server makes the Go client's name", name.startswith("sandbox-claim-") and len(name) == len("sandbox-claim-") + 5, name)
    claim = api.get_namespaced_custom_object(*CLAIMS, name)
    by_name = {"field_selector": "metadata.name=" + name, "timeout_seconds": 60}
    for event in watch.Watch().stream(api.list_namespaced_custom_object, *CLAIMS, **by_name):
        claim = event["object"]
        if claim.get("status", {}).get("sandbox", {}).get("name"):
            break
    box = claim.get("status", {}).get("sandbox", {}).get("name")
    check("a watch without a version tells the Sandbox", box, claim)
    by_name = {"field_selector": "metadata.name=" + box}
    listed = api.list_namespaced_custom_object(*BOXES, **by_name)
    same("which is listed by its name", [box], [i["metadata"]["name"] for i in listed["items"]])

    def ready(item):
        return any(c["type"] == "Ready" and c["status"] == "True" for c in item.get("status", {}).get("conditions", []))

    found = ready(listed["items"][0])
    if not found:
        for event in watch.Watch().stream(api.list_namespaced_custom_object, *BOXES, resource_version=listed["metadata"]["resourceVersion"],
                                          timeout_seconds=60, **by_name):
            found = ready(event["object"])
            if found:
                break
    check("and becomes ready under a watch from that list", found)
    api.delete_namespaced_custom_object(*CLAIMS, name)
    refused("close takes the claim away", 404, "NotFound", api.get_namespaced_custom_object, *CLAIMS, name)


def main():
    config.load_kube_config()
    api = client.CustomObjectsApi()
    python_sdk(api)
    go_sdk(api)


main()
