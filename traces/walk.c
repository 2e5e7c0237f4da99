/* SPDX-License-Identifier: MIT */
#include "traces/walk.h"

#include <errno.h>
#include <inttypes.h>

#include "traces/crc32c.h"
#include "traces/diag.h"

int walk_init(struct walk *walk, const struct trace_source *source, struct diag *diag)
{
    *walk = (struct walk){
        .diag = diag,
        .placed = true,
        .bad_from = TRACE_UNKNOWN_U64,
        .damage = {.first_offset = TRACE_UNKNOWN_U64},
    };
    return feed_init(&walk->feed, source);
}

void walk_release(struct walk *walk)
{
    feed_release(&walk->feed);
}

int walk_seek(struct walk *walk, uint64_t offset)
{
    int err = feed_seek(&walk->feed, offset);

    if (err < 0)
        return err;
    walk->placed = offset == TAPE_HEADER_BYTES;
    walk->next_number = 0;
    walk->next_index = 0;
    walk->bad_from = TRACE_UNKNOWN_U64;
    walk->ended = false;
    if (walk->placed)
        walk->damage = (struct trace_damage){.first_offset = TRACE_UNKNOWN_U64};
    return 0;
}

static int walk_error(struct walk *walk, int err)
{
    return diag_errno(walk->diag, err, "%s: byte %" PRIu64 ": cannot read",
                      walk->feed.source.name, walk->feed.offset + walk->feed.length);
}

static void damage_add(struct walk *walk, uint64_t offset, uint64_t blocks, uint64_t ops)
{
    walk->damage.blocks += blocks;
    walk->damage.ops += ops;
    if (offset < walk->damage.first_offset)
        walk->damage.first_offset = offset;
}

/* A tape that is read again is not complained of again. */
static bool note_wanted(struct walk *walk, uint64_t offset)
{
    if (!walk->diag || offset < walk->noted_to)
        return false;
    walk->noted_to = offset + 1;
    return true;
}

void walk_damaged(struct walk *walk, const struct block_header *header, uint64_t offset,
                  uint64_t ops, const char *why)
{
    damage_add(walk, offset, 1, ops);
    if (!note_wanted(walk, offset))
        return;
    if (header->type == BLOCK_OPS)
        diag_note(walk->diag, "%s: block %u at byte %" PRIu64 ": %s, %" PRIu64 " ops lost",
                  walk->feed.source.name, header->number, offset, why, ops);
    else
        diag_note(walk->diag, "%s: block %u at byte %" PRIu64 ": %s, no ops lost",
                  walk->feed.source.name, header->number, offset, why);
}

/* What lay between the last good block and this good header. */
static void gap_count(struct walk *walk, const struct block_header *header)
{
    uint64_t ops = 0, blocks = 0, offset = walk->feed.offset;
    bool bad = walk->bad_from != TRACE_UNKNOWN_U64;

    if (bad)
        offset = walk->bad_from;
    walk->bad_from = TRACE_UNKNOWN_U64;
    if (walk->placed) {
        ops = header->first_index - walk->next_index;
        blocks = header->number - walk->next_number;
    }
    if (bad && blocks == 0)
        blocks = 1;
    if (blocks == 0 && ops == 0)
        return;
    damage_add(walk, offset, blocks, ops);
    if (note_wanted(walk, offset))
        diag_note(walk->diag,
                  "%s: byte %" PRIu64 ": %" PRIu64 " block%s damaged or missing, %" PRIu64
                  " ops lost",
                  walk->feed.source.name, offset, blocks, blocks == 1 ? "" : "s", ops);
}

static int walk_end(struct walk *walk)
{
    uint64_t offset = walk->feed.offset;

    walk->ended = true;
    walk->damage.truncated = true;
    if (walk->bad_from != TRACE_UNKNOWN_U64) {
        offset = walk->bad_from;
        damage_add(walk, offset, 1, 0);
        walk->bad_from = TRACE_UNKNOWN_U64;
    }
    if (note_wanted(walk, offset))
        diag_note(walk->diag, "%s: ends at byte %" PRIu64 " without its end block: cut short",
                  walk->feed.source.name, walk->feed.offset + walk->feed.length);
    return 0;
}

/* Bytes of a good header can stand inside a damaged block's payload: its numbers then do not
 * fit. */
static bool header_fits(const struct walk *walk, const struct block_header *header)
{
    return !walk->placed ||
           (header->number >= walk->next_number && header->first_index >= walk->next_index);
}

/* Forward to where the next header may begin. */
static int walk_resync(struct walk *walk, const uint8_t *data, size_t length)
{
    int err;

    if (walk->bad_from == TRACE_UNKNOWN_U64)
        walk->bad_from = walk->feed.offset;
    err = feed_skip(&walk->feed, block_magic_find(data, length, 1));
    return err < 0 ? walk_error(walk, err) : 0;
}

int walk_next(struct walk *walk, struct block_header *ret_header)
{
    while (!walk->ended) {
        struct block_header header;
        const uint8_t *data;
        size_t length;
        int err;

        err = feed_need(&walk->feed, BLOCK_HEADER_MAX, &data, &length);
        if (err < 0)
            return walk_error(walk, err);
        if (length == 0)
            return walk_end(walk);
        err = block_header_load(&header, data, length);
        if (err == -EPROTONOSUPPORT)
            return diag_set(walk->diag, err,
                            "%s: byte %" PRIu64 ": a block of a newer version of the format",
                            walk->feed.source.name, walk->feed.offset);
        if (err == 0 && header_fits(walk, &header)) {
            gap_count(walk, &header);
            walk->placed = true;
            walk->next_number = header.number + 1;
            walk->next_index =
                header.first_index + (header.type == BLOCK_OPS ? header.entries : 0);
            *ret_header = header;
            return 1;
        }
        err = walk_resync(walk, data, length);
        if (err < 0)
            return err;
    }
    return 0;
}

static int walk_cut(struct walk *walk, const struct block_header *header)
{
    walk->ended = true;
    walk->damage.truncated = true;
    walk_damaged(walk, header, walk->feed.offset,
                 header->type == BLOCK_OPS ? header->entries : 0, "cut short");
    return walk_skip(walk, header);
}

int walk_payload(struct walk *walk, const struct block_header *header,
                 const uint8_t **ret_payload)
{
    size_t bytes = (size_t)header->header_bytes + header->payload_bytes, length;
    const uint8_t *data;
    int err;

    err = feed_need(&walk->feed, bytes, &data, &length);
    if (err < 0)
        return walk_error(walk, err);
    if (length < bytes)
        return walk_cut(walk, header);
    data += header->header_bytes;
    if (crc32c(0, data, header->payload_bytes) == header->payload_crc) {
        *ret_payload = data;
        return 1;
    }
    walk_damaged(walk, header, walk->feed.offset,
                 header->type == BLOCK_OPS ? header->entries : 0, "checksum wrong");
    return walk_skip(walk, header);
}

int walk_pass(struct walk *walk, const struct block_header *header)
{
    uint64_t bytes = (uint64_t)header->header_bytes + header->payload_bytes;
    uint64_t size = walk->feed.source.size_bytes;
    const uint8_t *data;
    size_t length;
    int err;

    if (walk->feed.source.pread && size != TRACE_UNKNOWN_U64) {
        if (walk->feed.offset > size || bytes > size - walk->feed.offset)
            return walk_cut(walk, header);
    } else {
        err = feed_need(&walk->feed, (size_t)bytes, &data, &length);
        if (err < 0)
            return walk_error(walk, err);
        if (length < bytes)
            return walk_cut(walk, header);
    }
    err = walk_skip(walk, header);
    return err < 0 ? err : 1;
}

int walk_skip(struct walk *walk, const struct block_header *header)
{
    int err;

    err = feed_skip(&walk->feed, (uint64_t)header->header_bytes + header->payload_bytes);
    return err < 0 ? walk_error(walk, err) : 0;
}
