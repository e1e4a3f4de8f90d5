/* Source of the format: POSIX.1-2017, pax, "ustar Interchange Format". */
#include "node/archive.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char target[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
    char prefix[155], rest[12];
};
static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static void put_text(char *field, size_t size, const char *text)
{
    size_t n = strlen(text);
    assert(n <= size);
    memcpy(field, text, n);
}

/* Digits and a NUL fill the field. */
static void put_octal(char *field, size_t size, size_t value)
{
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

static void put_header(struct buf *tar, char type, const char *name, unsigned mode, size_t n,
                       const char *target)
{
    struct header h = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    put_text(h.name, sizeof h.name, name);
    put_text(h.target, sizeof h.target, target);
    put_octal(h.mode, sizeof h.mode, mode);
    put_octal(h.uid, sizeof h.uid, 0);
    put_octal(h.gid, sizeof h.gid, 0);
    put_octal(h.size, sizeof h.size, n);
    put_octal(h.mtime, sizeof h.mtime, 0);
    memset(h.checksum, ' ', sizeof h.checksum); /* counts as blanks in its own sum */
    unsigned char bytes[BLOCK];
    memcpy(bytes, &h, BLOCK);
    size_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += bytes[i];
    put_octal(h.checksum, 7, sum);
    h.checksum[6] = '\0';
    buf_append(tar, &h, BLOCK);
}

void archive_folder(struct buf *tar, const char *name, unsigned mode)
{
    put_header(tar, '5', name, mode, 0, "");
}

void archive_link(struct buf *tar, const char *name, const char *target)
{
    put_header(tar, '2', name, 0777, 0, target);
}

static void fill_block(struct buf *tar, size_t n)
{
    static const char zeros[BLOCK];
    buf_append(tar, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

void archive_file(struct buf *tar, const char *name, unsigned mode, const void *bytes, size_t n)
{
    put_header(tar, '0', name, mode, n, "");
    buf_append(tar, bytes, n);
    fill_block(tar, n);
}

void archive_end(struct buf *tar)
{
    static const char zeros[2 * BLOCK];
    buf_append(tar, zeros, sizeof zeros);
}
