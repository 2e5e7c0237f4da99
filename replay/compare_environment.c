/* SPDX-License-Identifier: MIT */
#include "replay/compare_environment.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "traces/units.h"

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(object, key, json_string(text));
}

/* The first line of a file that begins with prefix, without it, blanks and the colon. */
static void set_line(json_t *object, const char *key, const char *path, const char *prefix)
{
    FILE *file = fopen(path, "re");
    char line[1024], *at;

    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, prefix, strlen(prefix)) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        at = line + strlen(prefix);
        at += strspn(at, " \t:");
        set_text(object, key, at);
        break;
    }
    fclose(file);
}

/* "none [mq-deadline] kyber": the one in brackets. */
static void set_chosen(json_t *object, const char *key, const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256], *open, *close;

    if (!file)
        return;
    if (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        open = strchr(line, '[');
        close = open ? strchr(open, ']') : NULL;
        if (close) {
            *close = '\0';
            set_text(object, key, open + 1);
        } else {
            set_text(object, key, line);
        }
    }
    fclose(file);
}

/* The folder of the whole disk in /sys for a device number; a partition's is its parent. */
static int disk_folder(dev_t device, char *folder, size_t size)
{
    char link[64], real[PATH_MAX], partition[PATH_MAX + 16], *slash;

    snprintf(link, sizeof link, "/sys/dev/block/%u:%u", major(device), minor(device));
    if (!realpath(link, real))
        return -1;
    snprintf(partition, sizeof partition, "%s/partition", real);
    slash = strrchr(real, '/');
    if (access(partition, F_OK) == 0 && slash)
        *slash = '\0';
    snprintf(folder, size, "%s", real);
    return 0;
}

static void read_device(json_t *object, dev_t device)
{
    static const struct {
        const char *key, *name;
    } facts[] = {
        {"device_model", "device/model"},        {"rotational", "queue/rotational"},
        {"queue_requests", "queue/nr_requests"}, {"logical_block", "queue/logical_block_size"},
        {"write_cache", "queue/write_cache"},    {"read_ahead_kb", "queue/read_ahead_kb"},
    };
    char folder[PATH_MAX], path[PATH_MAX + 64];
    size_t i;

    if (disk_folder(device, folder, sizeof folder) < 0)
        return;
    set_text(object, "device", strrchr(folder, '/') + 1);
    snprintf(path, sizeof path, "%s/queue/scheduler", folder);
    set_chosen(object, "scheduler", path);
    for (i = 0; i < sizeof facts / sizeof *facts; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, facts[i].name);
        set_line(object, facts[i].key, path, "");
    }
}

/* The mount a device number belongs to: the last that names it in mountinfo. */
static void read_mount(json_t *object, dev_t device)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[4096], point[1024], options[1024], kind[128], source[1024], super[1024], *dash;
    unsigned int major_number, minor_number;

    if (!file)
        return;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*d %*d %u:%u %*s %1023s %1023s", &major_number, &minor_number, point,
                   options) != 4)
            continue;
        dash = strstr(line, " - ");
        if (major_number != major(device) || minor_number != minor(device) || !dash ||
            sscanf(dash, " - %127s %1023s %1023s", kind, source, super) != 3)
            continue;
        set_text(object, "mount_point", point);
        set_text(object, "mount_options", options);
        set_text(object, "file_system", kind);
        set_text(object, "mount_source", source);
        set_text(object, "super_options", super);
    }
    fclose(file);
}

json_t *environment_read(const char *place)
{
    json_t *object = json_object();
    char text[UNITS_TEXT];
    struct utsname names;
    struct sysinfo info;
    struct stat stat_buf;

    if (!object)
        return NULL;
    set_text(object, "tool", "iotape " IOTAPE_VERSION);
    if (uname(&names) == 0) {
        set_text(object, "kernel", names.release);
        set_text(object, "machine", names.machine);
    }
    set_line(object, "cpu", "/proc/cpuinfo", "model name");
    snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    set_text(object, "cpus", text);
    set_line(object, "governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "");
    if (sysinfo(&info) == 0)
        set_text(object, "memory", units_size((uint64_t)info.totalram * info.mem_unit, text));
    set_line(object, "load", "/proc/loadavg", "");
    set_chosen(object, "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled");
    if (!place)
        return object;
    set_text(object, "place", place);
    if (stat(place, &stat_buf) < 0)
        return object;
    if (S_ISBLK(stat_buf.st_mode)) {
        read_device(object, stat_buf.st_rdev);
    } else {
        read_mount(object, stat_buf.st_dev);
        read_device(object, stat_buf.st_dev);
    }
    return object;
}

void environment_each(const json_t *environment,
                      void (*each)(void *context, const char *name, const char *value),
                      void *context)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)environment, key, value)
    {
        if (json_is_string(value))
            each(context, key, json_string_value(value));
    }
}
