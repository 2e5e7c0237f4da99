/* SPDX-License-Identifier: MIT */
#include "traces/block.h"

#include <errno.h>
#include <string.h>

#include "traces/bytes.h"
#include "traces/crc32c.h"

/* No text holds these bytes, and a transfer that mends line ends breaks them. */
static const uint8_t tape_magic[TAPE_MAGIC_BYTES] = {0x89, 'I', 'O', 'T', 'A', 'P', 'E', '\n'};
static const uint8_t block_magic[TAPE_MAGIC_BYTES] = {0x8b, 'T',  'B',  'L',
                                                      'K',  '\r', '\n', 0xa5};

void block_header_init(struct block_header *header, enum block_type type)
{
    *header = (struct block_header){
        .type = (uint8_t)type,
        .first_ns = INT64_MAX,
        .last_ns = INT64_MIN,
        .min_offset = UINT64_MAX,
        .wall_tape_ns = TRACE_UNKNOWN_I64,
    };
}

void block_header_sum(struct block_header *header, const struct trace_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct trace_op *op = &ops[i];
        uint64_t end;

        if (op->issue_ns < header->first_ns)
            header->first_ns = op->issue_ns;
        if (op->issue_ns > header->last_ns)
            header->last_ns = op->issue_ns;
        header->op_count[op->kind]++;
        header->op_bytes[op->kind] += trace_op_bytes(op);
        if (!trace_op_has_range(op->kind) || op->length == 0 || op->offset == TRACE_UNKNOWN_U64)
            continue;
        if (op->offset < header->min_offset)
            header->min_offset = op->offset;
        end = op->offset <= UINT64_MAX - op->length ? op->offset + op->length : UINT64_MAX;
        if (end > header->max_end)
            header->max_end = end;
    }
}

size_t block_header_store(const struct block_header *header, uint8_t *bytes)
{
    uint64_t kinds = 0;
    size_t at = 120;

    memset(bytes, 0, BLOCK_HEADER_MIN);
    memcpy(bytes, block_magic, sizeof(block_magic));
    for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++) {
        if (header->op_count[kind] == 0)
            continue;
        kinds |= 1ull << kind;
        store_le32(bytes + at, (uint32_t)header->op_count[kind]);
        store_le64(bytes + at + 4, header->op_bytes[kind]);
        at += 12;
    }
    bytes[8] = header->type;
    bytes[9] = header->codec;
    store_le16(bytes + 10, (uint16_t)(at + 4));
    store_le16(bytes + 12, TAPE_VERSION);
    store_le16(bytes + 14, header->flags);
    store_le32(bytes + 16, header->payload_bytes);
    store_le32(bytes + 20, header->raw_bytes);
    store_le32(bytes + 24, header->payload_crc);
    store_le32(bytes + 28, header->number);
    store_le64(bytes + 32, header->first_index);
    store_le32(bytes + 40, header->entries);
    store_le32(bytes + 44, header->first_entry);
    store_le32(bytes + 48, header->files);
    store_le32(bytes + 52, header->streams);
    store_le64(bytes + 56, header->lost);
    store_le64(bytes + 64, (uint64_t)header->first_ns);
    store_le64(bytes + 72, (uint64_t)header->last_ns);
    store_le64(bytes + 80, header->min_offset);
    store_le64(bytes + 88, header->max_end);
    store_le64(bytes + 96, (uint64_t)header->wall_tape_ns);
    store_le64(bytes + 104, header->wall_ns);
    store_le64(bytes + 112, kinds);
    store_le32(bytes + at, crc32c(0, bytes, at));
    return at + 4;
}

static void block_header_fields(struct block_header *header, const uint8_t *bytes)
{
    uint64_t kinds = load_le64(bytes + 112);
    size_t at = 120;

    memset(header, 0, sizeof(*header));
    header->type = bytes[8];
    header->codec = bytes[9];
    header->header_bytes = load_le16(bytes + 10);
    header->flags = load_le16(bytes + 14);
    header->payload_bytes = load_le32(bytes + 16);
    header->raw_bytes = load_le32(bytes + 20);
    header->payload_crc = load_le32(bytes + 24);
    header->number = load_le32(bytes + 28);
    header->first_index = load_le64(bytes + 32);
    header->entries = load_le32(bytes + 40);
    header->first_entry = load_le32(bytes + 44);
    header->files = load_le32(bytes + 48);
    header->streams = load_le32(bytes + 52);
    header->lost = load_le64(bytes + 56);
    header->first_ns = (int64_t)load_le64(bytes + 64);
    header->last_ns = (int64_t)load_le64(bytes + 72);
    header->min_offset = load_le64(bytes + 80);
    header->max_end = load_le64(bytes + 88);
    header->wall_tape_ns = (int64_t)load_le64(bytes + 96);
    header->wall_ns = load_le64(bytes + 104);
    for (unsigned int kind = 0; kind < TRACE_OP_COUNT; kind++) {
        if (!(kinds & 1ull << kind))
            continue;
        header->op_count[kind] = load_le32(bytes + at);
        header->op_bytes[kind] = load_le64(bytes + at + 4);
        at += 12;
    }
}

/* A right CRC says that nothing was damaged, not that the writer was a friend. */
static bool block_header_sane(const struct block_header *header)
{
    if (header->type == 0 || header->type >= BLOCK_TYPE_COUNT ||
        header->codec >= BLOCK_CODEC_COUNT || header->payload_bytes > BLOCK_PAYLOAD_MAX ||
        header->raw_bytes > BLOCK_PAYLOAD_MAX || header->files > TABLE_ENTRIES_MAX ||
        header->streams > TABLE_ENTRIES_MAX || header->first_index > UINT64_MAX - BLOCK_OPS_MAX)
        return false;
    if (header->type == BLOCK_OPS)
        return header->codec == BLOCK_COLUMNS && header->entries > 0 &&
               header->entries <= BLOCK_OPS_MAX;
    return header->codec != BLOCK_COLUMNS && header->entries <= TABLE_ENTRIES_MAX &&
           header->first_entry <= TABLE_ENTRIES_MAX;
}

int block_header_load(struct block_header *ret_header, const uint8_t *bytes, size_t length)
{
    struct block_header header;
    size_t header_bytes;

    if (memcmp(bytes, block_magic, length < sizeof(block_magic) ? length : sizeof(block_magic)))
        return -EBADMSG;
    if (length < BLOCK_HEADER_MIN)
        return -EAGAIN;
    header_bytes = load_le16(bytes + 10);
    if (header_bytes < BLOCK_HEADER_MIN || header_bytes > BLOCK_HEADER_MAX)
        return -EBADMSG;
    if (length < header_bytes)
        return -EAGAIN;
    if (crc32c(0, bytes, header_bytes - 4) != load_le32(bytes + header_bytes - 4))
        return -EBADMSG;
    /* A kind of operation that was added later counts as a newer version. */
    if (load_le16(bytes + 12) != TAPE_VERSION || load_le64(bytes + 112) >> TRACE_OP_COUNT)
        return -EPROTONOSUPPORT;
    if (header_bytes !=
        BLOCK_HEADER_MIN + 12 * (size_t)__builtin_popcountll(load_le64(bytes + 112)))
        return -EBADMSG;
    block_header_fields(&header, bytes);
    if (!block_header_sane(&header))
        return -EBADMSG;
    *ret_header = header;
    return 0;
}

size_t block_magic_find(const uint8_t *bytes, size_t length, size_t from)
{
    while (from < length) {
        const uint8_t *hit = memchr(bytes + from, block_magic[0], length - from);
        size_t left;

        if (!hit)
            return length;
        from = (size_t)(hit - bytes);
        left = length - from;
        if (memcmp(hit, block_magic, left < sizeof(block_magic) ? left : sizeof(block_magic)) ==
            0)
            return from;
        from++;
    }
    return length;
}

void tape_header_store(uint8_t *bytes, uint32_t flags)
{
    memset(bytes, 0, TAPE_HEADER_BYTES);
    memcpy(bytes, tape_magic, sizeof(tape_magic));
    store_le16(bytes + 8, TAPE_VERSION);
    store_le16(bytes + 10, TAPE_HEADER_BYTES);
    store_le32(bytes + 12, flags);
    store_le32(bytes + 60, crc32c(0, bytes, 60));
}

bool tape_magic_is(const uint8_t *bytes, size_t length)
{
    return length >= sizeof(tape_magic) && memcmp(bytes, tape_magic, sizeof(tape_magic)) == 0;
}

int tape_header_load(const uint8_t *bytes, uint32_t *ret_flags, uint32_t *ret_version)
{
    if (!tape_magic_is(bytes, TAPE_HEADER_BYTES))
        return -EBADMSG;
    if (crc32c(0, bytes, 60) != load_le32(bytes + 60))
        return -EBADMSG;
    *ret_version = load_le16(bytes + 8);
    if (*ret_version != TAPE_VERSION || load_le16(bytes + 10) != TAPE_HEADER_BYTES)
        return -EPROTONOSUPPORT;
    *ret_flags = load_le32(bytes + 12);
    return 0;
}
