// NCCL: ranks are processes of one host, connected by sockets.
//
// Like NCCL over sockets, an operation that waits for a lost rank never ends: the error can be asked
// for, and aborting the communicator ends the operation.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "stream.h"

namespace {

using namespace emulator;

enum Result { SUCCESS = 0, SYSTEM = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE = 6 };

constexpr auto PATIENCE = std::chrono::seconds(60);
// What a rank says first: its number, and the name by which it tells hosts apart.
constexpr size_t HOST = 60;

struct Greeting {
    int rank;
    char host[HOST];
};

struct Communicator {
    int rank;
    // The socket of every other rank.
    std::vector<int> sockets;
    std::atomic<int> error = SUCCESS;
    std::atomic<bool> aborted = false;
};

// One part of a group of messages between two ranks.
struct Message {
    Communicator* with;
    int peer;
    char* start;
    size_t bytes;
    bool send;
};

struct Group {
    int depth = 0;
    void* stream = nullptr;
    std::vector<Message> messages;
};

thread_local Group group;
thread_local std::string last_error;

Result failed(Result result, const std::string& why) {
    last_error = why;
    return result;
}

sockaddr_un address(const std::string& id, int rank, socklen_t& length) {
    sockaddr_un to = {AF_UNIX, {}};
    // An abstract name, which leaves no file.
    std::string name = "f2-emulator-" + id + "-" + std::to_string(rank);
    memcpy(to.sun_path + 1, name.data(), name.size());
    length = offsetof(sockaddr_un, sun_path) + 1 + name.size();
    return to;
}

bool whole(int socket, void* data, size_t bytes, bool write) {
    char* at = (char*)data;
    while (bytes > 0) {
        ssize_t done = write ? send(socket, at, bytes, MSG_NOSIGNAL) : recv(socket, at, bytes, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done, bytes -= done;
    }
    return true;
}

// A connection to a rank, which may not listen yet.
int connect_to(const std::string& id, int rank) {
    auto end = std::chrono::steady_clock::now() + PATIENCE;
    while (std::chrono::steady_clock::now() < end) {
        int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t length;
        sockaddr_un to = address(id, rank, length);
        if (connect(made, (sockaddr*)&to, length) == 0) return made;
        close(made);
        usleep(10000);
    }
    return -1;
}

// Connects to the ranks before this one, and waits for those after it.
Result meet(Communicator& own, int ranks, const std::string& id) {
    const char* named = getenv("NCCL_HOSTID");
    Greeting mine = {own.rank, {}};
    snprintf(mine.host, HOST, "%s", named ? named : "");
    own.sockets.assign(ranks, -1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length;
    sockaddr_un here = address(id, own.rank, length);
    if (bind(listener, (sockaddr*)&here, length) != 0 || listen(listener, ranks) != 0)
        return failed(SYSTEM, "no socket to listen at");
    bool same = false;
    for (int other = 0; other < ranks - 1; other++) {
        int made = -1;
        if (other < own.rank) {
            made = connect_to(id, other);
        } else {
            pollfd waiting = {listener, POLLIN, 0};
            if (poll(&waiting, 1, 60000) > 0) made = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        }
        Greeting theirs;
        if (made < 0 || !whole(made, &mine, sizeof mine, true) || !whole(made, &theirs, sizeof theirs, false))
            return failed(SYSTEM, "a rank did not come");
        own.sockets[theirs.rank] = made;
        same |= strncmp(theirs.host, mine.host, HOST) == 0;
    }
    close(listener);
    if (same) return failed(INVALID_USAGE, "Duplicate GPU detected");
    for (int peer : own.sockets)
        if (peer >= 0) fcntl(peer, F_SETFL, O_NONBLOCK);
    return SUCCESS;
}

// Moves what can be moved of a message; false if the connection is lost.
bool advance(Message& message) {
    int socket = message.with->sockets[message.peer];
    ssize_t done = message.send ? send(socket, message.start, message.bytes, MSG_NOSIGNAL)
                                : recv(socket, message.start, message.bytes, 0);
    if (done < 0) return errno == EAGAIN || errno == EINTR;
    message.start += done, message.bytes -= done;
    return done > 0 || message.bytes == 0;
}

// Sends and receives all messages at once; those between two ranks in their order.
void exchange(std::vector<Message> messages) {
    for (;;) {
        std::vector<pollfd> waiting;
        std::vector<Message*> next;
        bool lost = false;
        for (size_t i = 0; i < messages.size(); i++) {
            Message& own = messages[i];
            if (own.with->aborted) return;
            bool first = own.bytes > 0;
            for (size_t j = 0; j < i && first; j++)
                first = messages[j].bytes == 0 || messages[j].peer != own.peer || messages[j].send != own.send;
            if (!first) continue;
            waiting.push_back({own.with->sockets[own.peer], (short)(own.send ? POLLOUT : POLLIN), 0});
            next.push_back(&own);
        }
        if (next.empty()) return;
        poll(waiting.data(), waiting.size(), 50);
        for (size_t i = 0; i < next.size(); i++)
            if (waiting[i].revents && !advance(*next[i])) next[i]->with->error = REMOTE, lost = true;
        if (lost) usleep(10000);
    }
}

Result add(Message message, void* stream) {
    if (message.peer < 0 || message.peer >= (int)message.with->sockets.size() || message.peer == message.with->rank)
        return failed(INVALID_ARGUMENT, "no such rank");
    group.stream = stream;
    group.messages.push_back(message);
    return SUCCESS;
}

size_t size_of(int type) { return type <= 1 ? 1 : type == 7 ? 4 : type == 9 ? 2 : 0; }

}  // namespace

extern "C" {

struct Id {
    char bytes[128];
};

Result ncclGetVersion(int* version) {
    *version = 22900;
    return SUCCESS;
}

const char* ncclGetErrorString(Result result) {
    switch (result) {
        case SUCCESS: return "no error";
        case SYSTEM: return "unhandled system error";
        case INVALID_ARGUMENT: return "invalid argument";
        case INVALID_USAGE: return "invalid usage";
        case REMOTE: return "remote process exited or there was a network error";
    }
    return "unknown result code";
}

const char* ncclGetLastError(Communicator*) { return last_error.c_str(); }

Result ncclGetUniqueId(Id* id) {
    unsigned long long number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) return SYSTEM;
    snprintf(id->bytes, sizeof id->bytes, "%016llx", number);
    return SUCCESS;
}

Result ncclCommInitRank(Communicator** made, int ranks, Id id, int rank) {
    auto own = new Communicator;
    own->rank = rank;
    Result result = meet(*own, ranks, id.bytes);
    *made = own;
    return result;
}

// Kept: an operation of a graph may still name it.
Result ncclCommAbort(Communicator* own) {
    own->aborted = true;
    for (int socket : own->sockets)
        if (socket >= 0) shutdown(socket, SHUT_RDWR);
    return SUCCESS;
}

Result ncclCommDestroy(Communicator* own) {
    for (int socket : own->sockets)
        if (socket >= 0) close(socket);
    own->sockets.clear();
    return SUCCESS;
}

Result ncclCommGetAsyncError(Communicator* own, int* error) {
    *error = own->error;
    return SUCCESS;
}

Result ncclGroupStart() {
    group.depth++;
    return SUCCESS;
}

Result ncclGroupEnd() {
    if (--group.depth > 0 || group.messages.empty()) return SUCCESS;
    stream_of(group.stream)->enqueue([messages = std::move(group.messages)] { exchange(messages); });
    group.messages.clear();
    return SUCCESS;
}

Result ncclSend(const void* from, size_t count, int type, int peer, Communicator* own, void* stream) {
    ncclGroupStart();
    Result result = add({own, peer, (char*)from, count * size_of(type), true}, stream);
    Result ended = ncclGroupEnd();
    return result == SUCCESS ? ended : result;
}

Result ncclRecv(void* to, size_t count, int type, int peer, Communicator* own, void* stream) {
    ncclGroupStart();
    Result result = add({own, peer, (char*)to, count * size_of(type), false}, stream);
    Result ended = ncclGroupEnd();
    return result == SUCCESS ? ended : result;
}

// In place only: a rank's own part is where it sends from.
Result ncclAllGather(const void* from, void* to, size_t count, int type, Communicator* own, void* stream) {
    size_t bytes = count * size_of(type);
    if ((char*)from != (char*)to + own->rank * bytes) return failed(INVALID_ARGUMENT, "not in place");
    ncclGroupStart();
    for (int peer = 0; peer < (int)own->sockets.size(); peer++) {
        if (peer == own->rank) continue;
        add({own, peer, (char*)from, bytes, true}, stream);
        add({own, peer, (char*)to + peer * bytes, bytes, false}, stream);
    }
    return ncclGroupEnd();
}

Result ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Communicator* own, void* stream) {
    size_t bytes = count * size_of(type);
    ncclGroupStart();
    if (own->rank != root) add({own, root, (char*)to, bytes, false}, stream);
    else
        for (int peer = 0; peer < (int)own->sockets.size(); peer++)
            if (peer != root) add({own, peer, (char*)from, bytes, true}, stream);
    return ncclGroupEnd();
}
}
