# List: pages, versions, selectors.
. "$(dirname "$0")/lib.sh"

prepare() {
    local n
    for n in 1 2 3 4 5; do make "l$n" ".metadata.labels = {n: \"$n\", odd: \"$((n % 2))\"}"; done
}
names() { q '[.items[].metadata.name] | join(" ")'; }
# follow PATH [FILE-COMMAND-AFTER-THE-FIRST-PAGE]: all pages; the names in FOUND, the versions in VERSIONS.
follow() {
    local token
    FOUND='' VERSIONS=''
    api GET "$1"
    while code 200; do
        FOUND+="$(names) " VERSIONS+="$(version)"$'\n'
        token=$(q '.metadata.continue // empty')
        [ -n "$token" ] || break
        if [ -n "${2:-}" ]; then $2 && set -- "$1"; fi
        api GET "$1&continue=$token"
    done
    VERSIONS=$(sort -u <<<"${VERSIONS%$'\n'}")
}

check_130() { # a first page
    api GET "$B?limit=2"
    is "200 2 3" "$CODE $(q '"\(.items | length) \(.metadata.remainingItemCount)"')"
    like '^[A-Za-z0-9_-]+$' "$(q .metadata.continue)"
}

check_131() { # all pages, of one version
    follow "$B?limit=2"
    is "l1 l2 l3 l4 l5 " "$FOUND"
    is 1 "$(wc -l <<<"$VERSIONS")"
}

check_132() { # what is made between two pages is not in the later ones
    follow "$B?limit=2" "make l9"
    is "l1 l2 l3 l4 l5 " "$FOUND"
    is 1 "$(wc -l <<<"$VERSIONS")"
    api DELETE "$B/l9"
}

check_133() { # pages of a version that is gone
    only direct || return
    local own_list=$A/namespaces/default/sandboxes n token
    own_up || return
    for n in 1 2 3 4 5; do own POST "$own_list" "$(sandbox "c$n")"; done
    own GET "$own_list?limit=2"
    token=$(q .metadata.continue)
    OLD=$(version)
    forget_history "$own_list"
    own GET "$own_list?limit=2&continue=$token"
    refused 410 Expired "The provided continue parameter is too old to display a consistent list result"
    token=$(q .metadata.continue)
    like '^[A-Za-z0-9_-]+$' "$token"
    own GET "$own_list?limit=10&continue=$token"
    is "200 c3 c4 c5" "$CODE $(q '[.items[].metadata.name | select(startswith("c"))] | join(" ")')"
}
# forget_history PATH: neither etcd nor a server that starts anew knows what was before.
forget_history() {
    local n
    own_down
    own_up || return
    for n in 1 2 3; do own POST "$1" "$(sandbox "later-$RANDOM")"; done
    etcd_compact
    own_down
    own_up
}

check_134() { # tokens that are none
    api GET "$B?limit=2&continue=garbage"
    refused 400 BadRequest "continue key is not valid"
    api GET "$B?limit=2"
    api GET "$B?limit=2&resourceVersion=5&continue=$(q .metadata.continue)"
    refused 400 BadRequest "specifying resource version is not allowed when using continue"
}

check_135() { # with a selector nobody counts what remains
    api GET "$B?limit=2&labelSelector=odd%3D1"
    is "200 2 null" "$CODE $(q '"\(.items | length) \(.metadata.remainingItemCount)"')"
    like '^[A-Za-z0-9_-]+$' "$(q .metadata.continue)"
}

check_136() { # an exact version
    api GET "$B?resourceVersionMatch=Exact"
    refused 422 Invalid "resourceVersionMatch is forbidden unless resourceVersion is provided"
    api GET "$B?resourceVersionMatch=Exact&resourceVersion=0"
    refused 422 Invalid 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    api GET "$B"
    local rv
    rv=$(version)
    api GET "$B?resourceVersionMatch=Exact&resourceVersion=$rv"
    is "200 $rv" "$CODE $(version)"
    only direct || return
    [ -n "$OWN_PID" ] || { skip "no server of our own" && return; }
    own GET "$A/namespaces/default/sandboxes?resourceVersionMatch=Exact&resourceVersion=$OLD"
    refused 410 Expired "The resourceVersion for the provided list is too old."
}

check_137() { # a version at least as new
    make l137
    api GET "$B?resourceVersionMatch=NotOlderThan&resourceVersion=$RV"
    code 200
    [ "$(version)" -ge "$RV" ] || fail "$(version) is older than $RV"
    has l137 "$(names)"
    api DELETE "$B/l137"
}

check_138() { # an empty list
    api GET "$T"
    code 200
    has '"items":[]' "$BODY"
    like '^[1-9][0-9]*$' "$(version)"
}

check_139() { # label selectors
    local selector want
    while IFS='|' read -r selector want; do
        api GET "$B?labelSelector=$(jq -rn --arg s "$selector" '$s | @uri')"
        is "$selector: 200 $want" "$selector: $CODE $(names)"
    done <<'E'
n!=2|l1 l3 l4 l5
n notin (2,3)|l1 l4 l5
!n|
n in (1,5)|l1 l5
n>3|l4 l5
n<2|l1
odd|l1 l2 l3 l4 l5
odd=1,n!=1|l3 l5
odd==0|l2 l4
other!=x|l1 l2 l3 l4 l5
other=|
E
}

check_140() { # selectors that cannot be read
    api GET "$B?labelSelector=k%3D("
    refused 400 BadRequest "unable to parse requirement: found '(', expected: identifier"
    api GET "$B?fieldSelector=spec.x%3D1"
    refused 400 BadRequest "field label not supported: spec.x"
}

check_141() { # field selectors
    api GET "$B?fieldSelector=metadata.name%3Dl2"
    is "200 l2" "$CODE $(names)"
    api GET "$A/sandboxes?fieldSelector=metadata.name%3Dl2,metadata.namespace%3D$NS"
    is "200 l2" "$CODE $(names)"
    api GET "$A/sandboxes?fieldSelector=metadata.namespace!%3D$NS"
    code 200
    is 0 "$(q --arg ns "$NS" '[.items[] | select(.metadata.namespace == $ns)] | length')"
}

check_142() { # nothing is created without a namespace
    api POST "$A/sandboxes" "$(sandbox a)"
    code 404
}

run_checks
