#include "apiserver/base/crash.h"

#ifdef CRASH_POINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/log.h"

static const char *name_of(enum crash_point point)
{
    switch (point) {
#define CRASH_ROW(number, id, name)                                                                \
    case CRASH_##id:                                                                               \
        return name;
        CRASH_POINT_LIST(CRASH_ROW)
#undef CRASH_ROW
    }
    return "";
}

void crash_at(enum crash_point point)
{
    const char *chosen = getenv("AGENT_SANDBOX_CRASH_POINT");
    if (!chosen || strcmp(chosen, name_of(point)) != 0)
        return;
    log_error("crash point %d %s", (int)point, chosen);
    kill(getpid(), SIGKILL);
}
#endif
