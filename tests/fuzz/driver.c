/* Replays inputs through a fuzz target without a fuzzer: every file of the files and folders given,
 * in order of their names, however deep. Prints how many there were; a target that finds something
 * wrong aborts, and the line above says where. With clang's fuzzer this file is left out. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fail(const char *path)
{
    perror(path);
    return -1;
}

/* The target gets the bytes in a block of exactly their size, so that a sanitizer sees a read too
 * far. */
static int replay_file(const char *path, size_t *count)
{
    char block[4096];
    SCOPED(buf_fini) struct buf bytes = {0};
    FILE *f = fopen(path, "rb");
    if (!f)
        return fail(path);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        buf_append(&bytes, block, n);
    int broken = ferror(f);
    fclose(f);
    if (broken || buf_failed(&bytes))
        return fail(path);
    fprintf(stderr, "%s\n", path);
    SCOPED_FREE uint8_t *exact = xmemdup(bytes.data, bytes.len);
    LLVMFuzzerTestOneInput(exact, bytes.len);
    ++*count;
    return 0;
}

static int replay(const char *path, size_t *count);

static int not_hidden(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static int replay_folder(const char *path, size_t *count)
{
    struct dirent **entries;
    int failed = 0, n = scandir(path, &entries, not_hidden, alphasort);
    if (n < 0)
        return fail(path);
    for (int i = 0; i < n; i++) {
        SCOPED_FREE char *inner = xasprintf("%s/%s", path, entries[i]->d_name);
        if (!failed)
            failed = replay(inner, count);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

static int replay(const char *path, size_t *count)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return fail(path);
    return S_ISDIR(st.st_mode) ? replay_folder(path, count) : replay_file(path, count);
}

int main(int argc, char **argv)
{
    size_t count = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE-OR-FOLDER...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (replay(argv[i], &count) < 0)
            return 1;
    printf("%zu inputs replayed\n", count);
    return 0;
}
