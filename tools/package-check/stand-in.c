/* Answers like `moothall`, so that packages can be written and checked without building it. */
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    if (strcmp(name, "--version") == 0)
        puts("moothall " VERSION);
    else if (strcmp(name, "man") == 0)
        puts(".TH moothall 1\n.SH NAME\nmoothall \\- a program\n.SH SUBCOMMANDS\n.TP\nmoothall\\-check(1)");
    else
        printf("# %s\n", name);
    return 0;
}
