/* The C client, measured like the others: see benches/src/task.rs for the command line and report.rs for the output.
 *
 * One at a time by its blocking calls; several in flight by its asynchronous ones, each begun by the completion of
 * the one before. It has no connection that tells when it is there but by a watcher, which is waited for. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper.h>

static struct {
    const char *workload, *server;
    int in_flight, payload, children, unawaited;
    double seconds, warm_up;
    long operations;
} task = {.in_flight = 1, .payload = 128, .seconds = 3, .warm_up = 1};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* The children of what is listed are made by our own client's program. */
static char path[64], listed[64];
static char *data;

/* A time, or a count, in which operations are done. */
static double end;
static long left, begun, done;
static int under_way;
static double *samples;
static long sampled, room;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double processor(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static long status(const char *key)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = atol(line + strlen(key));
    if (file)
        fclose(file);
    return kib;
}

static int is(const char *workload)
{
    return strcmp(task.workload, workload) == 0;
}

static void fail(const char *what, int code)
{
    fprintf(stderr, "%s: %s\n", what, zerror(code));
    exit(1);
}

static void check(const char *what, int code)
{
    if (code != ZOK)
        fail(what, code);
}

static void begin_phase(double seconds, long operations)
{
    end = now() + seconds;
    left = operations;
    begun = done = sampled = 0;
}

static int goes_on(void)
{
    return task.operations ? left-- > 0 : now() < end;
}

static void took(double seconds)
{
    if (sampled == room) {
        room = room ? 2 * room : 1 << 16;
        samples = realloc(samples, room * sizeof *samples);
    }
    samples[sampled++] = seconds * 1e6;
}

static void watcher(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
        pthread_mutex_lock(&mutex);
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
    }
}

static zhandle_t *connect_now(void)
{
    zhandle_t *handle = zookeeper_init(task.server, watcher, 10000, 0, 0, 0);
    if (!handle)
        fail("zookeeper_init", ZSYSTEMERROR);
    pthread_mutex_lock(&mutex);
    while (zoo_state(handle) != ZOO_CONNECTED_STATE) {
        /* The state is set a moment before or after the watcher is told. */
        struct timespec at;
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += 1000000;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&changed, &mutex, &at);
    }
    pthread_mutex_unlock(&mutex);
    return handle;
}

struct request {
    zhandle_t *handle;
    double at;
};

static void begin(struct request *request);

/* Completions come one after another, in the client's own thread. */
static void completed(struct request *request, int code)
{
    check("completion", code);
    if (done++ % 16 == 0)
        took(now() - request->at);
    begin(request);
}

static void read_completed(int code, const char *value, int length, const struct Stat *stat, const void *context)
{
    (void)value, (void)length, (void)stat;
    completed((struct request *)context, code);
}

static void write_completed(int code, const struct Stat *stat, const void *context)
{
    (void)stat;
    completed((struct request *)context, code);
}

static void list_completed(int code, const struct String_vector *names, const void *context)
{
    (void)names;
    completed((struct request *)context, code);
}

static void begin(struct request *request)
{
    if (!goes_on()) {
        pthread_mutex_lock(&mutex);
        if (--under_way == 0)
            pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        return;
    }
    request->at = now();
    if (is("get"))
        check("zoo_aget", zoo_aget(request->handle, path, 0, read_completed, request));
    else if (is("list"))
        check("zoo_aget_children", zoo_aget_children(request->handle, listed, 0, list_completed, request));
    else
        check("zoo_aset", zoo_aset(request->handle, path, data, task.payload, -1, write_completed, request));
}

/* The first completion may come while the last request is begun: beginnings are made in the client's thread too. */
static void started(int code, const char *value, int length, const struct Stat *stat, const void *context)
{
    (void)value, (void)length, (void)stat;
    check("completion", code);
    begin((struct request *)context);
}

static void requests(zhandle_t *handle)
{
    char *buffer = malloc(task.payload + 1);
    if (task.in_flight == 1) {
        while (goes_on()) {
            double at = now();
            int length = task.payload;
            struct String_vector names;
            if (is("get")) {
                check("zoo_get", zoo_get(handle, path, 0, buffer, &length, NULL));
            } else if (is("list")) {
                check("zoo_get_children", zoo_get_children(handle, listed, 0, &names));
                deallocate_String_vector(&names);
            } else {
                check("zoo_set", zoo_set(handle, path, data, task.payload, -1));
            }
            took(now() - at);
            done++;
        }
        free(buffer);
        return;
    }
    struct request *all = calloc(task.in_flight, sizeof *all);
    under_way = task.in_flight;
    for (int i = 0; i < task.in_flight; i++) {
        all[i].handle = handle;
        check("zoo_aget", zoo_aget(handle, path, 0, started, &all[i]));
    }
    pthread_mutex_lock(&mutex);
    while (under_way)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    free(all);
    free(buffer);
}

static void connects(void)
{
    char *buffer = malloc(task.payload + 1);
    while (goes_on()) {
        double at = now();
        int length = task.payload;
        zhandle_t *handle = connect_now();
        check("zoo_get", zoo_get(handle, path, 0, buffer, &length, NULL));
        took(now() - at);
        done++;
        zookeeper_close(handle);
    }
    free(buffer);
}

static int by_size(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static void parse(int count, char **arguments)
{
    task.workload = arguments[1];
    for (int i = 2; i < count; i++) {
        const char *name = arguments[i] + 2;
        if (strcmp(name, "unawaited") == 0) {
            task.unawaited = 1;
            continue;
        }
        const char *value = arguments[++i];
        if (strcmp(name, "server") == 0)
            task.server = value;
        else if (strcmp(name, "in-flight") == 0)
            task.in_flight = atoi(value);
        else if (strcmp(name, "payload") == 0)
            task.payload = atoi(value);
        else if (strcmp(name, "children") == 0)
            task.children = atoi(value);
        else if (strcmp(name, "seconds") == 0)
            task.seconds = atof(value);
        else if (strcmp(name, "warm-up") == 0)
            task.warm_up = atof(value);
        else if (strcmp(name, "operations") == 0)
            task.operations = atol(value);
    }
}

int main(int count, char **arguments)
{
    long grown = 0;
    parse(count, arguments);
    zoo_set_debug_level(0);
    snprintf(path, sizeof path, "/bench-%d", task.payload);
    snprintf(listed, sizeof listed, "/bench-list-%d", task.children);
    data = calloc(1, task.payload + 1);
    zhandle_t *handle = connect_now();
    /* It may be there. */
    zoo_create(handle, path, data, task.payload, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    int idle = is("idle"), connecting = is("connect");
    if (!idle && !connecting && !is("get") && !is("list") && !is("set")) {
        fprintf(stderr, "not with the C client: %s\n", task.workload);
        return 1;
    }
    if (idle) {
        long before = status("VmRSS:");
        for (int i = 0; i < task.in_flight; i++)
            connect_now();
        grown = status("VmRSS:") - before;
    } else {
        begin_phase(task.warm_up, 0);
        connecting ? connects() : requests(handle);
    }
    begin_phase(task.seconds, task.operations);
    double cpu = processor(), at = now();
    if (idle) {
        usleep(task.seconds * 1e6);
        done = task.in_flight;
    } else {
        connecting ? connects() : requests(handle);
    }
    double elapsed = now() - at;
    cpu = processor() - cpu;
    qsort(samples, sampled, sizeof *samples, by_size);
    printf("{\"client\":\"c\",\"workload\":\"%s\",\"in_flight\":%d,\"payload\":%d,\"operations\":%ld,\"seconds\":%f,"
           "\"ops_per_second\":%f,\"cpu_us_per_op\":%f,\"cpu_share\":%f,\"resident_kib\":%ld,\"peak_kib\":%ld",
           task.workload, task.in_flight, task.payload, done, elapsed, done / elapsed, cpu * 1e6 / (done ? done : 1),
           cpu / elapsed, status("VmRSS:"), status("VmHWM:"));
    if (sampled)
        printf(",\"p50_us\":%f,\"p99_us\":%f,\"p999_us\":%f", samples[sampled / 2], samples[(sampled - 1) * 99 / 100],
               samples[(sampled - 1) * 999 / 1000]);
    if (idle)
        printf(",\"resident_kib_grown\":%ld", grown);
    printf("}\n");
    fflush(stdout);
    _exit(0);
}
