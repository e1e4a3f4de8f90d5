/* The first process of every Pod of sandbox-node, and of the test cluster: holds the pod's namespaces and reaps orphans
 * until it is told to end. Linked statically; the image holds nothing else. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return EXIT_FAILURE;
    for (;;) {
        int number = 0;

        if (sigwait(&set, &number) != 0)
            return EXIT_FAILURE;
        if (number != SIGCHLD)
            return EXIT_SUCCESS;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
}
