/* How to reach a cluster's API server and who we are there: read from a kubeconfig file or from
 * what a pod gets. Only what can be done without running programs is supported; anything else in
 * the chosen user or cluster is refused. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/err.h"
#include "apiserver/base/file.h"

struct kube_config { /* starts as {0}; all strings are owned, NULL = absent */
    char *server;    /* URL without a final slash */
    char *ca_file, *cert_file, *key_file;
    char *token, *token_file; /* the file's contents win while it can be read */
    /* Private, with what the kubeconfig holds inline; removed by kube_config_fini. */
    char *temp_dir;
    bool insecure;
    char *path;              /* of the kubeconfig; NULL = as a pod */
    struct file_stamp stamp; /* of what was read last */
};

/* Errors: ERR_NOT_FOUND no such file; ERR_INVALID with what is wrong in it. */
int kube_config_load_file(const char *path, struct kube_config *ret, struct err *err);
/* dir is the folder with token and ca.crt; the server's address comes from the environment.
 * Errors: ERR_NOT_FOUND we are not in a pod. */
int kube_config_load_pod(const char *dir, struct kube_config *ret, struct err *err);
/* From that file, or as a pod when path is NULL. */
int kube_config_load(const char *path, struct kube_config *ret, struct err *err);
/* What the kubeconfig holds inline follows it: where it was written since it was read, certificates
 * and keys take the place of those before in the same files, each at once, and the token is the new
 * one. 1 = so it was, 0 = nothing is new. Errors: as of loading, or ERR_INVALID more has changed
 * than what is inline, which takes a restart; all stays as it was then, and is not said again until
 * the file is written once more. One caller at a time; who only reads the paths needs no lock. */
int kube_config_follow(struct kube_config *c, struct err *err);
void kube_config_fini(struct kube_config *c);
