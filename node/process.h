/* Processes of commands in containers, as this machine sees them. Any thread. */
#pragma once

#include <sys/types.h>

/* Kills every process of the session that this one leads, itself as well. What a command started is
 * of its session, unless it began one of its own. */
void process_kill_session(pid_t leader);
