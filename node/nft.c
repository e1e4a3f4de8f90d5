#include "node/nft.h"

#include <nftables/libnftables.h>
#include <string.h>

#include "apiserver/base/str.h"

#define SAID_MAX 500 /* bytes of what it says that go into an error */

int nft_run(const char *ruleset, bool is_trial, struct err *err)
{
    struct nft_ctx *nft = nft_ctx_new(NFT_CTX_DEFAULT);
    if (!nft)
        return err_set(err, ERR_FORBIDDEN, "nftables cannot be used here");
    nft_ctx_set_dry_run(nft, is_trial);
    nft_ctx_buffer_output(nft); /* nothing of it is for our own */
    nft_ctx_buffer_error(nft);
    int rc = 0;
    if (nft_run_cmd_from_buffer(nft, ruleset) != 0) {
        const char *said = nft_ctx_get_error_buffer(nft);
        size_t line = strcspn(said, "\n");
        rc = err_set(err, ERR_FORBIDDEN, "nftables: %.*s", (int)str_utf8_cut(said, line, SAID_MAX),
                     said);
    }
    nft_ctx_free(nft);
    return rc;
}
