/* SPDX-License-Identifier: MIT */
#include "replay/compare_plot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct plot {
    char name[32];
    FILE *script;
    char *text;
    size_t bytes;
};

/* Okabe and Ito's colours, the dark ones first. */
const char *plot_colour(unsigned int n)
{
    static const char *const colours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                          "#E69F00", "#56B4E9", "#000000", "#8C6D1F"};

    return colours[n % (sizeof colours / sizeof *colours)];
}

void plot_quote(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20)
            fputc('?', script);
        else
            fputc(*text, script);
        if (*text == '\'')
            fputc('\'', script);
    }
    fputc('\'', script);
}

int plot_new(struct plot **ret_plot, const char *name, unsigned int height, FILE **ret_script)
{
    struct plot *plot = calloc(1, sizeof *plot);

    if (!plot)
        return -ENOMEM;
    plot->script = open_memstream(&plot->text, &plot->bytes);
    if (!plot->script) {
        free(plot);
        return -ENOMEM;
    }
    fprintf(plot->script,
            "set terminal svg size 540,%u dynamic name '%s' font 'sans,14'\n"
            "set encoding utf8\n"
            "set termoption noenhanced\n"
            "set border 3 lc rgb '#666666'\nset tics nomirror tc rgb '#333333'\n"
            "set grid lc rgb '#dddddd' lt 1 lw 1\n"
            "set key outside bottom center horizontal tc rgb '#222222' samplen 2\n",
            height, name);
    snprintf(plot->name, sizeof plot->name, "%s", name);
    *ret_plot = plot;
    *ret_script = plot->script;
    return 0;
}

/* In the child: gnuplot between the two pipes, silent. */
static void child_plot(int in, int out)
{
    int null = open("/dev/null", O_WRONLY);

    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || null < 0 || dup2(null, 2) < 0)
        _exit(127);
    execlp("gnuplot", "gnuplot", "-", (char *)NULL);
    _exit(127);
}

/* Feeds text to one pipe and collects what the other gives, whichever is ready. */
static int exchange(int to, int from, const char *text, size_t bytes, char **ret_answer)
{
    struct pollfd fds[2] = {{to, POLLOUT, 0}, {from, POLLIN, 0}};
    char *answer = NULL, *grown;
    size_t used = 0, room = 0;
    ssize_t got;

    while (fds[1].fd >= 0) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[0].fd >= 0 && fds[0].revents) {
            got = bytes > 0 ? write(to, text, bytes) : 0;
            if (got > 0) {
                text += got;
                bytes -= (size_t)got;
            }
            if (bytes == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
                close(to);
                fds[0].fd = -1;
            }
        }
        if (!fds[1].revents)
            continue;
        if (used + 4096 > room) {
            grown = realloc(answer, room = room * 2 + 65536);
            if (!grown)
                break;
            answer = grown;
        }
        got = read(from, answer + used, room - used - 1);
        if (got > 0)
            used += (size_t)got;
        else if (got == 0 || (errno != EINTR && errno != EAGAIN))
            fds[1].fd = -1;
    }
    if (fds[0].fd >= 0)
        close(to);
    if (answer)
        answer[used] = '\0';
    *ret_answer = answer;
    return answer && used > 0 ? 0 : -EIO;
}

static int run_gnuplot(const char *text, size_t bytes, char **ret_answer)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int to[2], from[2], status = -1, err;
    pid_t child;

    *ret_answer = NULL;
    if (pipe2(to, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(from, O_CLOEXEC) < 0) {
        close(to[0]);
        close(to[1]);
        return -EMFILE;
    }
    sigaction(SIGPIPE, &ignore, &before);
    child = fork();
    if (child == 0)
        child_plot(to[0], from[1]);
    close(to[0]);
    close(from[1]);
    fcntl(to[1], F_SETFL, O_NONBLOCK);
    if (child < 0) {
        close(to[1]);
        err = -EAGAIN;
    } else {
        err = exchange(to[1], from[0], text, bytes, ret_answer);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(from[0]);
    sigaction(SIGPIPE, &before, NULL);
    if (err == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        err = -EIO;
    if (err < 0) {
        free(*ret_answer);
        *ret_answer = NULL;
    }
    return err;
}

bool plot_possible(void)
{
    static int found = -1;
    static const char try[] = "set terminal svg\nplot 1\n";
    char *answer;

    if (found < 0) {
        found = run_gnuplot(try, sizeof try - 1, &answer) == 0;
        if (found)
            free(answer);
    }
    return found;
}

static void write_escaped(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '"')
            fputs("&quot;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '<')
            fputs("&lt;", out);
        else
            fputc(*text, out);
}

/* Copies gnuplot's drawing with the plot's name before every id and reference: several plots
 * share a page. */
static void write_named(FILE *out, const char *text, const char *end, const char *name)
{
    static const char *const marks[] = {"id='", "id=\"", "href='#", "url(#"};
    size_t i, length;

    while (text < end) {
        for (i = 0; i < 4; i++) {
            length = strlen(marks[i]);
            if (strncmp(text, marks[i], length) == 0)
                break;
        }
        if (i < 4) {
            fprintf(out, "%s%s-", marks[i], name);
            text += length;
        } else {
            fputc(*text++, out);
        }
    }
}

/* The svg element of gnuplot's document, said to be a picture with a label. */
static int take_svg(const struct plot *plot, const char *answer, const char *label,
                    char **ret_svg)
{
    const char *start = strstr(answer, "<svg"), *end, *box, *inner;
    size_t bytes = 0;
    char *svg = NULL;
    FILE *out;

    end = start ? strstr(start, "</svg>") : NULL;
    box = start ? strstr(start, "viewBox=") : NULL;
    inner = start ? strstr(start, "</desc>") : NULL;
    if (!end || !box || !inner || inner > end)
        return -EIO;
    out = open_memstream(&svg, &bytes);
    if (!out)
        return -ENOMEM;
    fputs("<svg role=\"img\" aria-label=\"", out);
    write_escaped(out, label);
    fprintf(out,
            "\" %.*s xmlns=\"http://www.w3.org/2000/svg\" "
            "xmlns:xlink=\"http://www.w3.org/1999/xlink\">",
            (int)(strchr(box + 9, '"') + 1 - box), box);
    write_named(out, inner + strlen("</desc>"), end, plot->name);
    fputs("</svg>\n", out);
    if (fclose(out) != 0) {
        free(svg);
        return -ENOMEM;
    }
    *ret_svg = svg;
    return 0;
}

void plot_drop(struct plot *plot)
{
    fclose(plot->script);
    free(plot->text);
    free(plot);
}

int plot_finish(struct plot *plot, const char *label, char **ret_svg)
{
    char *answer = NULL;
    int err = fclose(plot->script) == 0 ? 0 : -ENOMEM;

    if (err == 0)
        err = run_gnuplot(plot->text, plot->bytes, &answer);
    if (err == 0)
        err = take_svg(plot, answer, label, ret_svg);
    free(answer);
    free(plot->text);
    free(plot);
    return err;
}
