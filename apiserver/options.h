/* What the command line of sandbox-apiserver says. At the start, one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/log.h"

struct options {
    const char *bind_address, *cert_file, *key_file;
    int64_t port;
    const char *client_ca_file, *requestheader_ca_file;
    char **requestheader_allowed_names;
    const char *kubeconfig;
    bool without_cluster, standalone;
    const char *data_dir, *etcd_program;
    const char *store;
    char **etcd_servers;
    const char *etcd_ca_file, *etcd_cert_file, *etcd_key_file;
    int64_t compaction_interval_s;
    bool reconcile;
    const char *identity, *cluster_domain;
    int64_t leader_lease_ms;
    int64_t sandbox_workers, claim_workers, template_workers, warm_pool_workers;
    int64_t warm_pool_batch, warm_pool_delay_ms, warm_pool_lull_ms;
    int64_t warm_pool_grace_ms, warm_pool_recheck_ms;
    double warm_pool_rate;
    bool warm_pool_eviction;
    bool detailed_ready_reasons;
    bool disable_http2;
    bool disable_sandbox_events, disable_claim_events, disable_claim_stamps;
    const char *label_domains_file;
    char **policy_resolvers;
    int64_t max_pod_streams, streaming_idle_ms;
    int64_t workers, max_connections, max_reads, max_writes, max_body, history_events;
    int64_t request_timeout_s, idle_timeout_s, shutdown_delay_s, shutdown_grace_s;
    const char *log_level;
    enum log_level level; /* what it says */
};

/* Into ret, which starts as {0}; options_fini in any case. 0 = go on, else the program exits with
 * *ret_status, and has said why: after --help and --version 0, for a wrong line 2. */
int options_parse(int argc, char **argv, struct options *ret, int *ret_status);
void options_fini(struct options *o);
