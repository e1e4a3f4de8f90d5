/* How to reach a cluster's API server and who we are there: read from a kubeconfig file or from
 * what a pod gets. Only what can be done without running programs is supported; anything else in
 * the chosen user or cluster is refused. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/err.h"

struct kube_config { /* starts as {0}; all strings are owned, NULL = absent */
    char *server;    /* URL without a final slash */
    char *ca_file, *cert_file, *key_file;
    char *token, *token_file; /* the file's contents win while it can be read */
    /* Private, with what the kubeconfig holds inline; removed by kube_config_fini. */
    char *temp_dir;
    bool insecure;
};

/* Errors: ERR_NOT_FOUND no such file; ERR_INVALID with what is wrong in it. */
int kube_config_load_file(const char *path, struct kube_config *ret, struct err *err);
/* dir is the folder with token and ca.crt; the server's address comes from the environment.
 * Errors: ERR_NOT_FOUND we are not in a pod. */
int kube_config_load_pod(const char *dir, struct kube_config *ret, struct err *err);
/* From that file, or as a pod when path is NULL. */
int kube_config_load(const char *path, struct kube_config *ret, struct err *err);
void kube_config_fini(struct kube_config *c);
