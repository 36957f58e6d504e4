/* What `Load.add` does, for whoever has the places of its slots, the class (`IS`) and `unit`, the UNIT of load.py. */
#ifndef LOAD_H
#define LOAD_H

static inline int is_load(PyObject *load, Py_ssize_t bucket)
{
    if (!IS(load, Load))
        return 0;
    PyObject *buckets = AT(load, Load, buckets);
    return buckets != NULL && PyList_CheckExact(buckets) && bucket < PyList_GET_SIZE(buckets) &&
           is_float(AT(load, Load, seconds)) && is_float(AT(load, Load, longest)) && is_int(AT(load, Load, rows));
}

static inline int add_load(PyObject *load, double seconds, Py_ssize_t rows, Py_ssize_t bucket)
{
    return add_float(&AT(load, Load, seconds), seconds) && add_int(&AT(load, Load, rows), rows) &&
           add_bucket(AT(load, Load, buckets), bucket) && add_longest(&AT(load, Load, longest), seconds);
}

/* The bucket of a time among so many, as proxy.load has them. */
static inline Py_ssize_t load_bucket(double seconds, Py_ssize_t count)
{
    const double units = seconds * unit;
    Py_ssize_t bits = 0;

    if (units >= 1e15)
        return count - 1;
    for (unsigned long long left = units > 0 ? (unsigned long long)units : 0; left; left >>= 1)
        bits++;
    return bits < count ? bits : count - 1;
}

#endif
