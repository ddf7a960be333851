create table orders (id bigserial primary key, amount bigint not null, booked bool not null default false);
-- One row. `fence` is the largest token that has been shown.
create table total (id int primary key, amount bigint not null, fence bigint not null);
insert into total values (1, 0, 0);
