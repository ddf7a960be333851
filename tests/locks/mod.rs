//! Locks on real servers, seen from both ends: what callers get, and what goes over the wire.
//!
//! | module | concern |
//! |---|---|
//! | `alone` | members without a quorum that show less than is there |
//! | `barriers` | no participant goes on too early, and none waits for ever |
//! | `befallen` | proclaiming, and durable locks, whatever befalls each request |
//! | `blocking` | threads without a runtime, with every recipe |
//! | `cancelled` | acquires that are dropped, wherever they are |
//! | `carried` | requests of recipes, whatever befalls them |
//! | `closing` | what the end of a program takes along and waits for |
//! | `cohort_leavers` | tasks of a cohort that give up as they are passed the lock, and nodes that do not last |
//! | `cohort_losses` | what becomes of those who wait for a cohort whose lock is lost |
//! | `cohorts` | one node for many tasks, which pass the lock on |
//! | `conditions` | when being woken proves the grant |
//! | `contenders` | who is in a queue, as others see it |
//! | `conversions` | read locks that become write locks, and the other way round |
//! | `costs` | what each of the other recipes costs |
//! | `counts` | requests, round trips and notifications of the exclusive lock, each with its number |
//! | `crowds` | many at once, and many who give up |
//! | `delays` | pauses after holders that have not released the lock |
//! | `doubt` | creates that were not answered, request by request |
//! | `durable` | locks that stay locked when their holders die |
//! | `durations` | waits and limits of any length |
//! | `elections` | who leads, and that there are never two |
//! | `ensembles` | members that lag, lose their leader, or have no quorum |
//! | `grants` | grants of durable locks: when one is made, and when one is taken away |
//! | `groups` | group members, and nodes that come back |
//! | `guards` | giving locks back, and hearing of their loss |
//! | `handovers` | sessions that are left to others, and what is not left in them |
//! | `hearing` | holders hear of what becomes of their lock, whatever becomes of single reads |
//! | `holders` | following who holds a lock |
//! | `interference` | asking for locks back, taking them away, foreign nodes, and exhausted paths |
//! | `lapses` | leases of durable locks that are not renewed any more |
//! | `leases` | what counts on a member that has lost its leader, and in a process that was stopped |
//! | `lists` | access control lists of all that recipes create |
//! | `long_queues` | listings that are longer than others, and than is taken |
//! | `multi_locks` | several locks as one |
//! | `observed` | what is reported of locks, and to whom |
//! | `old_servers` | making do with what there is |
//! | `orphans` | nodes that servers refuse to delete |
//! | `others` | the simple lock, the herd lock, locks that are taken twice |
//! | `overruns` | locks that are taken from holders that exceed their time |
//! | `owners` | whose a durable lock is, and attempts of its owner that are given up |
//! | `paths` | paths that are missing, or go while they are about to be used |
//! | `permits` | how many permits there are, which nodes take them, and in which order they are granted |
//! | `queue` | who comes when |
//! | `reasons` | losses whose reason takes a while to find out |
//! | `rechecks` | waiters that no event reaches |
//! | `refusals` | servers that are too busy |
//! | `renewals` | paths that are made anew, and attempts that do not wait for that |
//! | `required` | paths that must be there, and that no recipe brings back |
//! | `rw_locks` | many readers, or one writer |
//! | `semaphores` | so many at a time |
//! | `session_loss` | sessions that end under holders and waiters |
//! | `several_clients` | several locks as one, of clients with sessions of their own |
//! | `standstills` | holders that stall, are out of reach, or are closed |
//! | `strangers` | nodes of other implementations, and of none |
//! | `tenures` | how long durable locks are held, by the clock |
//! | `terms` | limits of the time for which a lock is held, of locks that are lost or become others |
//! | `tickets` | places in a queue that are kept without a waiting task |
//! | `support` | servers, proxies, and ways of waiting |

mod alone;
mod barriers;
mod befallen;
mod blocking;
mod cancelled;
mod carried;
mod closing;
mod cohort_leavers;
mod cohort_losses;
mod cohorts;
mod conditions;
mod contenders;
mod conversions;
mod costs;
mod counts;
mod crowds;
mod cut_off;
mod delays;
mod doubt;
mod durable;
mod durations;
mod elections;
mod ensembles;
mod grants;
mod groups;
mod guards;
mod handovers;
mod hearing;
mod holders;
mod interference;
mod lapses;
mod leases;
mod lists;
mod long_queues;
mod multi_locks;
mod observed;
mod old_servers;
mod orphans;
mod others;
mod overruns;
mod owners;
mod paths;
mod permits;
mod queue;
mod reasons;
mod rechecks;
mod refusals;
mod renewals;
mod required;
mod rw_locks;
mod semaphores;
mod session_loss;
mod several_clients;
mod standstills;
mod strangers;
mod support;
mod tenures;
mod terms;
mod tickets;
