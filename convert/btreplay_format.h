/* SPDX-License-Identifier: MIT */
/*
 * The files btrecord writes and btreplay reads, one a device and CPU: DEVICE.replay.CPU.
 * A header of four u64 (version, genesis, bunches, packets), then bunches: u64 packets, u64
 * time in ns, and that many packets of 24 bytes: u64 sector, u64 bytes, u32 direction (1 =
 * read), u32 unused. Byte order of the recording machine. The header's totals are written last
 * and may be stale.
 */
#ifndef CONVERT_BTREPLAY_FORMAT_H
#define CONVERT_BTREPLAY_FORMAT_H

enum btreplay_layout {
    BTREPLAY_HEADER = 32,
    BTREPLAY_GENESIS = 8,
    BTREPLAY_BUNCHES = 16,
    BTREPLAY_PACKETS = 24,
    BTREPLAY_BUNCH = 16,
    BTREPLAY_BUNCH_TIME = 8,
    BTREPLAY_PACKET = 24,
    BTREPLAY_PACKET_BYTES = 8,
    BTREPLAY_PACKET_READ = 16,
    BTREPLAY_PACKETS_MAX = 512, /* in one bunch */
};

#define BTREPLAY_VERSION 0x010000ull /* 1.0.0 */

#endif
