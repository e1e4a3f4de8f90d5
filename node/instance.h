/* One run of one container of a Pod, as the engine has it. What a Pod's containers have done is
 * kept by the engine alone, in the labels and states of these, so a node that is started again goes
 * on where it was. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LABEL_NODE "node.agent-sandbox.dev/node"
#define LABEL_UID "node.agent-sandbox.dev/pod-uid"
#define LABEL_POD "node.agent-sandbox.dev/pod" /* NAMESPACE/NAME */
#define LABEL_CONTAINER "node.agent-sandbox.dev/container"
#define LABEL_ATTEMPT "node.agent-sandbox.dev/attempt" /* from 0, one more each time */
#define LABEL_STEP "node.agent-sandbox.dev/back-off"   /* starts in a row that failed soon before */

#define INSTANCE_PAUSE "" /* name of the one that holds the namespaces; no container has it */

enum instance_state { INSTANCE_CREATED, INSTANCE_RUNNING, INSTANCE_EXITED };
struct instance {
    char *id, *name, *image_id;
    char *ip;    /* of the pause container, "" = none */
    char *netns; /* likewise, the file of its network namespace */
    unsigned attempt, step;
    enum instance_state state;
    int exit_code, stop_signal;
    bool is_oom_killed;
    int64_t created_ms, started_ms, finished_ms; /* unix */
    char *reason, *message;                      /* how it ended, NULL = nothing special */
};
struct instances { /* instances_fini */
    struct instance *v;
    size_t n;
};

/* From the engine's inspection; network is where its address is looked for. */
void instance_read(const cJSON *inspection, const char *network, struct instance *ret);
void instance_fini(struct instance *i);
void instances_fini(struct instances *list);
/* The newest of that name, or the one before it; NULL = none. */
const struct instance *instances_find(const struct instances *list, const char *name,
                                      unsigned back);
