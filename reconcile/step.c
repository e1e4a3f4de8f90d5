#include "reconcile/step.h"

#include <stdlib.h>

#include "apiserver/base/json.h"

void step_fini(struct step *s)
{
    json_free(s->body);
    free(s->error);
    *s = (struct step){0};
}
