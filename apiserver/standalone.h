/* What a server without a cluster starts beside its other parts; all of it does nothing unless the
 * options say standalone. Fills what the options leave open with files of its own. */
#pragma once

#include "apiserver/app.h"

/* Certificates and, unless objects are kept elsewhere, an etcd. */
int standalone_prepare(struct app *a, struct err *err);
void standalone_end(struct app *a);
/* Where the server is reached from its own machine. */
const char *standalone_address(const struct app *a);
/* The ways into Pods. */
int standalone_start_tunnels(struct app *a, struct err *err);
void standalone_free_tunnels(struct app *a); /* after tunnels_stop */
/* The reconciler's client, which points at this very server; kubeconfigs for everybody else. */
int standalone_connect(struct app *a, struct err *err);
