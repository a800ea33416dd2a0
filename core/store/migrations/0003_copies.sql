-- Cards that were shown once more, to admins who take no part in the lane that asks.

CREATE TABLE approval_copies (
    approval INTEGER NOT NULL REFERENCES approvals (id),
    delivery INTEGER NOT NULL REFERENCES deliveries (id),
    PRIMARY KEY (approval, delivery)
) STRICT, WITHOUT ROWID;
