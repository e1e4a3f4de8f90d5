/* The formulas of shares and quota are those of a kubelet: 1024 shares a CPU, at least 2; a period
 * of 100 ms, at least 1 ms of it. */
#include "node/resource.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/quantity.h"

#define PERIOD_US 100000
#define QUOTA_MIN_US 1000
#define SHARES_MIN 2
#define SHARES_MAX 262144

static int64_t clamp(int64_t value, int64_t min, int64_t max)
{
    return value < min ? min : value > max ? max : value;
}

cJSON *resource_limits(const cJSON *container)
{
    int64_t milli;
    cJSON *limits = json_object();
    const cJSON *cpu = json_at(container, "resources.requests.cpu");
    const cJSON *cpu_limit = json_at(container, "resources.limits.cpu");
    if (quantity_read_milli(cpu ? cpu : cpu_limit, &milli) == 0)
        json_set_at(limits, "cpu.shares",
                    json_int(clamp(milli < SHARES_MAX ? milli * 1024 / 1000 : SHARES_MAX,
                                   SHARES_MIN, SHARES_MAX)));
    if (quantity_read_milli(cpu_limit, &milli) == 0 && milli > 0 && milli < INT64_MAX / PERIOD_US) {
        json_set_at(limits, "cpu.period", json_int(PERIOD_US));
        json_set_at(limits, "cpu.quota",
                    json_int(clamp(milli * PERIOD_US / 1000, QUOTA_MIN_US, INT64_MAX)));
    }
    if (quantity_read_milli(json_at(container, "resources.limits.memory"), &milli) == 0 &&
        milli > 0)
        json_set_at(limits, "memory.limit", json_int(milli / 1000 + (milli % 1000 != 0)));
    if (limits->child)
        return limits;
    json_free(limits);
    return NULL;
}
