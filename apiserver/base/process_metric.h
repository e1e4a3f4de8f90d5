/* What the kernel says about this process, under the names that Prometheus' own libraries use:
 * processor time, memory, open files, start. Read from /proc/self whenever the metrics are asked
 * for; a file that cannot be read leaves its values out. */
#pragma once

void process_metric_on(void);
void process_metric_off(void);
