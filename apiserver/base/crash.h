/* Crash points: places between two steps of something that must not be left half done, at which a
 * process can be killed on purpose, to show that whoever comes after it finishes or undoes what was
 * begun. The environment variable AGENT_SANDBOX_CRASH_POINT names the one at which it dies, as by
 * kill -9. Only builds with -DCRASH_POINTS (make CRASH=1) have them; elsewhere they are nothing. */
#pragma once

/* Number, name; a number stays what it is, for reports name it. Each is tested in
 * tests/scale/points.sh. */
#define CRASH_POINT_LIST(ROW)                                                                      \
    /* a claim bound in its POST */                                                                \
    ROW(1, CLAIM_CHOSEN, "claim-chosen")                                                           \
    ROW(2, CLAIM_STORED, "claim-stored")                                                           \
    /* a claim bound by the reconciler */                                                          \
    ROW(3, BIND_CHOSEN, "bind-chosen")                                                             \
    ROW(4, BIND_STORED, "bind-stored")                                                             \
    /* a claim that gets a Sandbox of its own */                                                   \
    ROW(5, COLD_DECIDED, "cold-decided")                                                           \
    ROW(6, COLD_MADE, "cold-made")                                                                 \
    ROW(7, CLAIM_STATUS_DECIDED, "claim-status-decided")                                           \
    ROW(8, CLAIM_STATUS_WRITTEN, "claim-status-written")                                           \
    /* a pool that grows and shrinks */                                                            \
    ROW(9, MEMBER_DECIDED, "member-decided")                                                       \
    ROW(10, MEMBER_MADE, "member-made")                                                            \
    ROW(11, MEMBER_DELETED, "member-deleted")                                                      \
    /* a Sandbox: its children are made, changed, and removed as it is suspended or ends */        \
    ROW(12, CHILD_DECIDED, "child-decided")                                                        \
    ROW(13, CHILD_WRITTEN, "child-written")                                                        \
    ROW(14, CHILD_REMOVAL_DECIDED, "child-removal-decided")                                        \
    ROW(15, CHILD_REMOVED, "child-removed")                                                        \
    ROW(16, SANDBOX_STATUS_DECIDED, "sandbox-status-decided")                                      \
    ROW(17, SANDBOX_STATUS_WRITTEN, "sandbox-status-written")                                      \
    /* the end of a claim, of its Sandbox, of a Sandbox by itself */                               \
    ROW(18, CLAIM_END_DECIDED, "claim-end-decided")                                                \
    ROW(19, CLAIM_ENDED, "claim-ended")                                                            \
    ROW(20, SANDBOX_END_DECIDED, "sandbox-end-decided")                                            \
    ROW(21, SANDBOX_ENDED, "sandbox-ended")                                                        \
    /* what a client deletes */                                                                    \
    ROW(22, DELETE_STORED, "delete-stored")

enum crash_point {
#define CRASH_ROW(number, id, name) CRASH_##id = number,
    CRASH_POINT_LIST(CRASH_ROW)
#undef CRASH_ROW
};

#ifdef CRASH_POINTS
void crash_at(enum crash_point point);
#define CRASH_POINT(id) crash_at(CRASH_##id)
#else
#define CRASH_POINT(id) ((void)CRASH_##id)
#endif
