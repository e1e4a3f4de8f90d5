/* Parts of the command line beside running. */
#pragma once

/* sandbox-node image build: argv[0] is "image". The exit status. */
int command_image(int argc, char **argv);
/* The program that holds a Pod's namespaces, beside this one or where `make install` puts it; the
 * caller's, NULL = not there. */
char *command_find_pause(void);
